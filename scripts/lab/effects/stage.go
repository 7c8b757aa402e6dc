// Package effects searches every schedule of few deviations of the jobs around an order:
// clients that put orders by HTTP, and receipts. It runs the real intake.Intake,
// order.Processor and receipt.Processor over the stores of their contract suites.
//
// Actors are coroutines that stop before each call, one at a time. The usual schedule
// runs one after the other without a fault. A deviation is a fault of one call, a change
// to another actor, or the start of a task beside a running one.
//
// Read stage.go (how a schedule runs), intake.go and receipt.go (what runs and what must
// hold) and search.go (all schedules, and the shortest history of a broken one).
package effects

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"orderonce/domain/order"
	"orderonce/scripts/lab/simulation/schedule"
)

const (
	scope    = order.Scope("lab")
	callTime = 100 * time.Millisecond // of each call
	function = time.Minute            // the timeout of a function, and the length of a lease
	mostRuns = 40                     // deliveries of one task, until it must have ended
)

func epoch() time.Time { return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC) }

// stage runs tasks.
type stage struct {
	ctx     context.Context
	choose  schedule.Choose
	now     time.Time
	waiting []*task // to be started, in the order of their due times
	actors  []*actor
	current *actor // nil if none runs
	begun   int
	broken  string   // what went wrong while it ran
	history []string // nil if none is kept
	keeps   bool
}

// task is work for an actor, such as the delivery of a message.
type task struct {
	name string
	due  time.Time
	runs int
	// run does the work. It returns when the task is due again, or false if it has ended.
	run func(a *actor) (again time.Time, repeat bool)
	// died returns when the task is due again after its actor died.
	died func(at time.Time) time.Time
}

// actor is a coroutine that works on a task.
type actor struct {
	*stage

	name   string
	task   *task
	began  time.Time
	next   string // the call that it is about to make
	reads  bool   // the call changes nothing
	fault  fault
	dead   bool
	resume func() (struct{}, bool)
	yield  func(struct{}) bool
}

// fault is what happens to one call.
type fault string

const (
	none       fault = ""
	lost       fault = "the request is lost"
	unanswered fault = "done, but the answer is lost"
	diesBefore fault = "the worker dies before it"
	diesAfter  fault = "done, and the worker dies"
	refused    fault = "certainly not done"
)

// faults returns what can happen to the call that the actor is about to make.
func (a *actor) faults() []fault {
	if a.reads {
		return []fault{lost, diesBefore}
	}
	return []fault{lost, unanswered, diesBefore, diesAfter, refused}
}

// killed unwinds the stack of an actor that dies.
type killed struct{}

// play starts and runs tasks until none is left, or something is broken.
func (s *stage) play(tasks ...*task) {
	s.now = epoch()
	for _, t := range tasks {
		s.add(t)
	}
	for more := true; more && s.broken == ""; {
		more = s.step()
	}
	for _, a := range s.actors {
		a.dead = true
		a.resume() // unwinds its stack
	}
}

func (s *stage) add(t *task) {
	if t.runs == mostRuns {
		s.broken = fmt.Sprintf("%s has not ended after %d deliveries", t.name, t.runs)
		return
	}
	s.waiting = append(s.waiting, t)
	slices.SortStableFunc(s.waiting, func(a, b *task) int { return a.due.Compare(b.due) })
}

// step takes one step: a call of an actor, with or without a fault, or the start of a
// task. It returns false if nothing is left to do.
func (s *stage) step() bool {
	type option func()
	var options []option
	if a := s.current; a != nil {
		options = append(options, func() { s.call(a, none) })
		for _, f := range a.faults() {
			options = append(options, func() { s.call(a, f) })
		}
	}
	for i := range s.waiting { // the first is the usual one if no actor runs
		options = append(options, func() { s.start(i) })
	}
	for _, a := range s.actors {
		if a != s.current {
			options = append(options, func() { s.current = a; s.call(a, none) })
		}
	}
	if len(options) == 0 {
		return false
	}
	options[s.choose(len(options))]()
	return true
}

// call lets an actor make its call and run to the one after. If it has ended, another
// continues.
func (s *stage) call(a *actor, f fault) {
	s.now = s.now.Add(callTime)
	if s.keeps {
		s.history = append(s.history, fmt.Sprintf("%8s  %-10s %s%s", s.now.Sub(epoch()), a.name, a.next, suffix(f)))
	}
	a.fault = f
	s.run(a)
}

func suffix(f fault) string {
	if f == none {
		return ""
	}
	return ": " + string(f)
}

// start starts a waiting task. A task that is not due yet is started when it is.
func (s *stage) start(i int) {
	t := s.waiting[i]
	s.waiting = slices.Delete(s.waiting, i, i+1)
	if t.due.After(s.now) {
		s.now = t.due
	}
	s.begun++
	t.runs++
	a := &actor{stage: s, name: fmt.Sprintf("worker %d", s.begun), task: t, began: s.now}
	if s.keeps {
		s.history = append(s.history, fmt.Sprintf("%8s  %-10s begins with %s", s.now.Sub(epoch()), a.name, t.name))
	}
	a.resume, _ = iter.Pull(func(yield func(struct{}) bool) {
		a.yield = yield
		a.work()
	})
	s.actors = append(s.actors, a)
	s.run(a)
}

// work does the actor's task and puts it back if it is due again.
func (a *actor) work() {
	died := true
	defer func() {
		if p := recover(); p != nil && p != (killed{}) {
			panic(p)
		}
		if died && !a.dead {
			a.task.due = a.task.died(a.now)
			a.add(a.task)
		}
	}()
	again, repeat := a.task.run(a)
	died = false
	if repeat {
		a.task.due = again
		a.add(a.task)
	}
}

// run runs an actor to its next call or to its end.
func (s *stage) run(a *actor) {
	s.current = a
	if _, alive := a.resume(); alive {
		return
	}
	s.actors = slices.DeleteFunc(s.actors, func(other *actor) bool { return other == a })
	s.current = nil
	if len(s.actors) > 0 {
		s.current = s.actors[0]
	}
}

// do makes a call when the stage lets it. It returns the fault that the caller sees: none
// if do was called and answered.
func (a *actor) do(name string, reads bool, do func()) fault {
	a.next, a.reads = name, reads
	if !a.yield(struct{}{}) || a.dead {
		panic(killed{})
	}
	switch a.fault {
	case diesBefore:
		panic(killed{})
	case lost, refused:
		return a.fault
	case none, unanswered, diesAfter:
	}
	do()
	if a.fault == diesAfter {
		panic(killed{})
	}
	return a.fault
}

// lease returns the lease of the actor's invocation.
func (a *actor) lease() order.Lease {
	return order.Lease{Owner: a.name, From: a.now, Until: a.began.Add(function)}
}
