// Package stage runs small simulated worlds and searches them for a violation. A world
// has a clock, actors and events that are still to come. An actor is a coroutine that
// stops before each of its calls. At each step a schedule chooses what happens next: the
// default option, or a deviation such as a fault of the call.
//
// The package refuses to know what the actors do and what is correct: the scenarios that
// run on it say that.
//
// Read stage.go (how a world runs), tape.go (schedules, and all with few deviations),
// search.go (many worlds, and the shortest history of a broken one), history.go and
// coroutine.go.
package stage

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Stage is the state of one world.
type Stage struct {
	Context   context.Context //nolint:containedctx // a world is one operation
	Now       time.Time
	Actors    []*Actor // that have not ended, in the order in which they began
	Current   *Actor   // whose turn it is; nil if none can continue
	Events    []*Event // that are still to come
	Broken    *Violation
	FaultFree bool // no fault or other deviation happens any more
	Steps     int

	CallTime time.Duration // of each call
	LostTime time.Duration // more, until the caller of a lost call gives up
	// Prompt means that an event happens when it is due. Otherwise it waits until no
	// actor works, and the schedule chooses among the events that wait.
	Prompt bool
	// Oldest means that the actor that began first continues, and not the one that began
	// last.
	Oldest bool
	// Deviations appends what may happen instead of the default option.
	Deviations  func(all []Option) []Option
	pool        *Pool
	choose      Choose
	tape        Tape
	defaultFrom int // after so many choices no deviation is offered; 0 means never
	began       time.Time
	begun       int      // actors
	history     *History // nil if none is kept
	options     []Option
}

// Event is something that happens at a time.
type Event struct {
	At  time.Time
	For any // tells it from others
	Do  func()
}

// Option is what can happen next: an event, a call of an actor with or without a fault,
// or anything else.
type Option struct {
	Event *Event
	Actor *Actor
	Fault Fault
	Do    func()
}

// Actor is a coroutine that makes calls.
type Actor struct {
	*Stage

	Name   string
	Began  time.Time
	Skew   time.Duration // of its clock
	Frozen bool
	Next   Call  // the call that it is about to make
	Fault  Fault // of this call
	Of     any   // what the scenario knows of it
	Ended  func()

	routine *Coroutine
	dead    bool
}

// Call is what an actor does outside of itself.
type Call struct {
	Name   string
	Faults []Fault // that it can have
}

// Fault is what happens to one call.
type Fault string

// The faults that every call to a store or a provider can have.
const (
	None       Fault = ""
	Lost       Fault = "the request is lost"
	Unanswered Fault = "done, but the answer is lost"
	DiesBefore Fault = "the worker dies before it"
	DiesAfter  Fault = "done, and the worker dies"
)

// Schedule chooses the options of a run, from its beginning.
func (s *Stage) Schedule(p *Pool, c Choose, began time.Time) {
	s.pool, s.choose, s.began, s.Now = p, c, began, began
}

// Pick returns one of n options, and records the choice.
func (s *Stage) Pick(k Kind, n int) int {
	if s.FaultFree || n < 2 {
		return 0
	}
	i := s.choose(k, n)
	s.tape = append(s.tape, byte(i)) //nolint:gosec // G115: a choice has fewer than 256 options
	return i
}

// Run takes steps until nothing is left to do or something is broken.
func (s *Stage) Run(after func()) {
	for s.Broken == nil && s.step() {
		s.Steps++
		after()
	}
}

// End stops the actors that still work.
func (s *Stage) End() {
	for _, a := range s.Actors {
		a.dead = true
		s.pool.Resume(a.routine) // unwinds its stack
	}
	s.Actors, s.Current = nil, nil
}

// step lets one thing happen. It returns false if nothing is left to do.
func (s *Stage) step() bool {
	next := s.next()
	if next != nil && s.Prompt && (s.Current == nil || !next.At.After(s.Now)) {
		s.Happen(next)
		return true
	}
	if s.Current == nil && next == nil {
		return false
	}
	first := Option{Actor: s.Current}
	if s.Current == nil {
		first = Option{Event: next}
	}
	s.options = append(s.options[:0], first)
	if !s.FaultFree && (s.defaultFrom == 0 || len(s.tape) < s.defaultFrom) {
		s.options = s.Deviations(s.options)
	}
	switch o := s.options[s.Pick(Deviation, len(s.options))]; {
	case o.Do != nil:
		o.Do()
	case o.Event != nil:
		s.Happen(o.Event)
	default:
		s.Call(o.Actor, o.Fault)
	}
	return true
}

// next returns the earliest event, or nil.
func (s *Stage) next() (next *Event) {
	for _, e := range s.Events {
		if next == nil || e.At.Before(next.At) {
			next = e
		}
	}
	return next
}

// At adds an event.
func (s *Stage) At(at time.Time, of any, do func()) {
	s.Events = append(s.Events, &Event{at, of, do})
}

// Happen lets an event happen: at its time, or now if an actor works meanwhile.
func (s *Stage) Happen(e *Event) {
	s.Events = slices.DeleteFunc(s.Events, func(other *Event) bool { return other == e })
	if e.At.After(s.Now) && (s.Current == nil || !s.Prompt) {
		s.Now = e.At
	}
	e.Do()
}

// Start starts an actor of a kind, and runs it to its first call.
func (s *Stage) Start(kind, what string, work func(a *Actor)) *Actor {
	s.begun++
	a := s.NewActor(kind + " " + strconv.Itoa(s.begun))
	s.Add(a.Name, "begins with "+what, "")
	s.Enter(a, s.pool.Start(func() { work(a) }))
	return a
}

// NewActor returns an actor that has not begun.
func (s *Stage) NewActor(name string) *Actor { return &Actor{Stage: s, Name: name, Began: s.Now} }

// Enter runs an actor to its first call.
func (s *Stage) Enter(a *Actor, c *Coroutine) {
	a.routine = c
	s.Actors = append(s.Actors, a)
	s.Resume(a)
}

// Call lets an actor make its next call, with a fault or without one.
func (s *Stage) Call(a *Actor, f Fault) {
	s.Now = s.Now.Add(s.CallTime)
	if f == Lost || f == Unanswered {
		s.Now = s.Now.Add(s.LostTime)
	}
	s.Add(a.Name, a.Next.Name, string(f))
	a.Fault = f
	s.Resume(a)
}

// Resume runs an actor to its next call or to its end. Then another one continues, see
// Awake.
func (s *Stage) Resume(a *Actor) {
	s.Current = a
	if s.pool.Resume(a.routine) {
		return
	}
	s.Actors = slices.DeleteFunc(s.Actors, func(other *Actor) bool { return other == a })
	s.Current = s.Awake()
	if a.Ended != nil {
		a.Ended()
	}
}

// Awake returns the actor that began last and is not frozen, or nil. If the world is
// Oldest, it is the one that began first.
func (s *Stage) Awake() (awake *Actor) {
	for _, a := range s.Actors {
		if !a.Frozen && (awake == nil || !s.Oldest) {
			awake = a
		}
	}
	return awake
}

// Others returns the actors beside the current one that are not frozen.
func (s *Stage) Others() (all []*Actor) {
	for _, a := range s.Actors {
		if a != s.Current && !a.Frozen {
			all = append(all, a)
		}
	}
	return all
}

// Freeze freezes an actor for a while, perhaps with its clock.
func (s *Stage) Freeze(a *Actor, d time.Duration, stops bool) {
	s.Add(a.Name, fmt.Sprintf("freezes for %v before it can %s", d, a.Next.Name), "")
	a.Frozen = true
	s.Current = s.Awake()
	s.At(s.Now.Add(d), nil, func() {
		a.Frozen, s.Current = false, a
		if stops {
			a.Skew -= d
		}
		s.Add(a.Name, "goes on", "")
	})
}

// Clock returns the time by the actor's clock.
func (a *Actor) Clock() time.Time { return a.Now.Add(a.Skew) }

// Die ends an actor in the middle of its work.
func (a *Actor) Die() { a.routine.Die() }

// Dead reports whether the world has ended before the actor.
func (a *Actor) Dead() bool { return a.dead }

// Await waits until the actor may make a call, and returns the fault that it has.
func (a *Actor) Await(c Call) Fault {
	a.Next = c
	if !a.dead { // else the call is made while its stack unwinds
		a.routine.Yield()
	}
	if a.dead || a.Fault == DiesBefore {
		a.Die()
	}
	return a.Fault
}

// Do makes a call when the stage lets it. It returns the fault that the caller sees: None
// if do was called and answered.
func (a *Actor) Do(c Call, do func()) Fault {
	f := a.Await(c)
	if f == None || f == Unanswered || f == DiesAfter {
		do()
	}
	if f == DiesAfter {
		a.Die()
	}
	return f
}

// Violated keeps the first violation.
func (s *Stage) Violated(i Invariant, order, format string, args ...any) {
	if s.Broken == nil {
		s.Broken = &Violation{i, order, fmt.Sprintf(format, args...)}
	}
}
