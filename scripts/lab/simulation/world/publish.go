package world

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"orderonce/domain/order/ordertest"
	"orderonce/domain/outbox"
	"orderonce/scripts/lab/simulation/oracle"
	"orderonce/scripts/lab/stage"
)

// stream has the events of all rows in the order in which they were written. Its consumer
// gets everything from a place on, again after a failure.
type stream struct {
	all  []outbox.Event
	done int // events that need not be delivered again
	bus  ordertest.Bus
}

func (w *World) appendStream() {
	if !w.setup.Publish {
		return
	}
	for _, x := range w.incidents.orders {
		r, _ := w.services.store.Peek(x.id)
		for _, e := range r.Events[min(x.streamed, len(r.Events)):] {
			out := outbox.Event{OrderID: x.id, Total: r.Total, Trace: r.Trace, Event: e}
			w.stream.all = append(w.stream.all, out)
		}
		x.streamed = max(x.streamed, len(r.Events))
	}
}

// unpublished reports whether the stream has something to deliver, and nobody who works
// on it.
func (w *World) unpublished() bool {
	working := func(a *stage.Actor) bool { return workerOf(a).task.kind == publish && !a.Frozen }
	return w.stream.done < len(w.stream.all) && !slices.ContainsFunc(w.Actors, working)
}

func (w *World) publications(options []option, first option) []option {
	late := w.Current != nil && !w.setup.Adversarial
	if first.kind == publish || late || !w.unpublished() || len(w.Actors) > w.setup.workers() {
		return options
	}
	return append(options, option{kind: publish})
}

// mostStreamed is how many events the stream delivers at once. It is more than the bus
// takes in one call.
const mostStreamed = 100

func (w *World) publish(option) {
	from := w.stream.done
	batch := w.stream.all[from:min(from+mostStreamed, len(w.stream.all))]
	w.start(task{
		kind: publish, of: strconv.Itoa(from) + "-" + strconv.Itoa(from+len(batch)),
		run: func(k *Worker) { k.publish(from, batch) },
	}, "stream", fmt.Sprintf("delivers %d events from number %d on to publisher", len(batch), from+1), "")
}

func (k *Worker) publish(from int, batch []outbox.Event) {
	done, err := outbox.Publisher{Bus: bus{k}}.Publish(context.Background(), batch)
	c := oracle.Call{Name: oracle.Checkpoint, Detail: fmt.Sprintf("%d of %d published", done, len(batch))}
	if err == nil {
		c.Detail = "all published"
	}
	_ = k.call(c, func() (response, error) {
		s := &k.world.stream
		s.done = max(s.done, from+done)
		return ok(), nil
	})
}

type bus struct{ worker *Worker }

var _ outbox.Bus = bus{}

// Put implements outbox.Bus. The case decides which entry the bus refuses, if it refuses
// one.
func (b bus) Put(ctx context.Context, events []outbox.Event) (failed []int, err error) {
	k, w := b.worker, b.worker.world
	err = k.call(oracle.Call{Name: oracle.Put, Detail: names(events)}, func() (r response, err error) {
		if k.fault == RefusesEntry {
			w.stream.bus.Refuse(events[w.setup.Variety%len(events)].OrderID)
		}
		failed, err = w.stream.bus.Put(ctx, events)
		for i, e := range events {
			if !slices.Contains(failed, i) && (err == nil || errors.Is(err, outbox.ErrRefused)) {
				w.oracle.Published(e)
			}
		}
		return ok(), err
	})
	return failed, err
}

func names(events []outbox.Event) string {
	all := make([]string, len(events))
	for i, e := range events {
		all[i] = fmt.Sprintf("event %d of %s (%s)", e.Event.Seq, e.OrderID, e.Event.Type())
	}
	return strings.Join(all, ", ")
}
