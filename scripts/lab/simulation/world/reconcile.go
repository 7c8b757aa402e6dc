package world

import (
	"context"
	"iter"
	"time"

	"orderonce/domain/order"
	"orderonce/domain/settle"
	"orderonce/scripts/lab/simulation/oracle"
)

var _ settle.Waiting = waiting{}

// nextRecheck returns the times at which the first and the last waiting order is due, and
// whether any order waits.
func (w *World) nextRecheck() (first, last time.Time, waits bool) {
	for _, x := range w.incidents.orders {
		r, _ := w.services.store.Peek(x.id)
		if r.DueAt.IsZero() {
			continue
		}
		if !waits || r.DueAt.Before(first) {
			first = r.DueAt
		}
		if !waits || r.DueAt.After(last) {
			last = r.DueAt
		}
		waits = true
	}
	return first, last, waits
}

// waitsForReconcile reports whether the index has the order, so that no operator needs to
// ask about it.
func (w *World) waitsForReconcile(x *incident) bool {
	r, _ := w.services.store.Peek(x.id)
	return w.setup.Reconcile && !r.DueAt.IsZero()
}

// rechecks returns an early run of the reconciler: between deliveries at the time at
// which the first order is due, and at any time if one is due.
func (w *World) rechecks(options []option, first option) []option {
	due, _, waits := w.nextRecheck()
	between := w.Current == nil || !due.After(w.Now)
	room := len(w.Actors) <= w.setup.workers() && (w.setup.Adversarial || !w.doing(reconcile))
	if waits && between && room && first.kind != reconcile && w.mayPause(due, 0) {
		options = append(options, option{kind: reconcile, at: due})
	}
	return options
}

// onlyRechecks reports whether an option changes no row and no intent without the
// reconciler.
func (o option) onlyRechecks() bool {
	task := o.kind
	if o.kind == call {
		task = o.worker.task.kind
	}
	return task == reconcile || task == publish
}

// reconcile begins a run of the reconciler.
func (w *World) reconcile(o option) {
	if w.Current != nil || len(w.Actors) > 0 {
		w.disturb()
	}
	if o.at.After(w.Now) {
		w.Now = o.at
	}
	w.incidents.rechecked = true
	w.start(task{
		kind: reconcile, threads: true, failed: func() { w.incidents.rechecked = false }, run: (*Worker).recheck,
	}, "schedule", "starts reconcile run", "")
}

// recheck asks about every due order, as the function of the schedule does.
func (k *Worker) recheck() {
	r := settle.Reconciler{
		Follower: k.follower(), Waiting: waiting{k}, Parallel: 1,
	}
	done, err := r.Run(context.Background(), k.Now().Add(oracle.FunctionTime))
	if k.dead || k.Dead() {
		return
	}
	if err != nil || done.More || len(done.Failed)+len(done.Unavailable) > 0 {
		k.world.incidents.rechecked = false // the next run continues
	}
	k.world.oracle.Reported(done.NoIntent)
}

type waiting struct{ worker *Worker }

// Due reads the index in one step. A run with several steps would read it while it looks
// at an order, and only one of them may run at a time.
func (s waiting) Due(ctx context.Context, at time.Time) iter.Seq2[order.ID, error] {
	return func(yield func(order.ID, error) bool) {
		var all []order.ID
		err := s.worker.call(oracle.Call{Name: oracle.Due}, func() (r response, err error) {
			for id, dueErr := range s.worker.world.services.store.Due(ctx, at) {
				all, err = append(all, id), dueErr
				r.text += string(id) + " "
			}
			return r, err
		})
		if err != nil {
			yield("", err)
			return
		}
		for _, id := range all {
			if !yield(id, nil) {
				return
			}
		}
	}
}

func (s waiting) until(due time.Time) string {
	if due.IsZero() {
		return "for ever"
	}
	return "by " + due.Sub(s.worker.Now()).String()
}
