// Command conform checks the rules of Stripe and AWS on which this project rests: against
// the doubles of its tests, an emulator that others wrote, or the services themselves. A
// rule is one sentence with its source and one check, which is the same for all of them.
//
// Read rule.go (what a rule is, and how one is checked), world.go (where), then the rules
// of a service, such as stripe.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Rule is a sentence about a service that its double obeys, and this project relies on.
type Rule struct {
	ID     string // service and name, such as "stripe/key-replay"
	Says   string // the sentence, without a full stop
	Source string // page, with its wording where a reader may doubt it
	Check  func(*Run)

	// Wait is how old what Begin made has to be when Check looks at it. Begin returns what
	// Check has to know, for a process that continues a day later.
	Wait  time.Duration
	Begin func(*Run) (state string)

	// Offline says why the real service cannot be made to show the rule; "" if it can.
	Offline string
}

// offline says why the real service cannot be made to show a rule.
func offline(why string, r Rule) Rule {
	r.Offline = why
	return r
}

// Outcome is what became of the check of a rule.
type Outcome string

// The outcomes.
const (
	Kept     Outcome = "kept"
	Broken   Outcome = "broken"  // the service behaves otherwise
	Lacking  Outcome = "lacking" // the endpoint does not have the operation
	Offline  Outcome = "offline" // see Rule.Offline
	Waiting  Outcome = "waiting" // for Rule.Wait: continue with --resume
	Failed   Outcome = "failed"  // the check had an error, and says nothing about the rule
	NotBegun Outcome = "not run" // the run ended before it
)

// Result is the outcome of a rule.
type Result struct {
	Rule    string    `json:"rule"`
	Outcome Outcome   `json:"outcome"`
	Detail  string    `json:"detail,omitempty"` // what was seen instead, or the error
	Note    string    `json:"note,omitempty"`   // of a person: why it is not kept
	State   string    `json:"state,omitempty"`  // of Begin, while it waits
	Due     time.Time `json:"due,omitzero"`     // the end of the wait
}

// Run is one check of one rule. Its methods must be called from one goroutine.
type Run struct {
	World

	Context context.Context //nolint:containedctx // a check makes many calls
	Rule    Rule
	State   string // of Begin

	broken  []string
	cleanup []func(context.Context) error
}

// stopped unwinds a check that cannot go on.
type stopped struct{ error }

// missing ends a check for which the world does not have what it needs.
type missing struct {
	outcome Outcome // Lacking or Offline
	why     string
}

func (m missing) Error() string { return m.why }

// Want compares what a service did with what the rule says.
func (r *Run) Want(what string, got, want any) {
	if diff := cmp.Diff(want, got); diff != "" {
		r.broken = append(r.broken, fmt.Sprintf("%s: got %v, want %v", what, got, want))
	}
}

// Must ends the check on an error of a call that the rule is not about.
func (r *Run) Must(err error) {
	if err != nil {
		panic(stopped{err})
	}
}

// Stop ends a check that has nothing more to compare.
func (r *Run) Stop() { panic(stopped{}) }

// Defer adds what removes something that the check made. It runs also after Ctrl-C.
func (r *Run) Defer(remove func(context.Context) error) { r.cleanup = append(r.cleanup, remove) }

// Pass lets time pass: a double's clock moves, another endpoint is waited for.
func (r *Run) Pass(d time.Duration) { r.Must(r.World.Pass(r.Context, d)) }

// Until waits until something is so, for what a service does in its own time. It reports
// whether it became so within two minutes.
func (r *Run) Until(is func() bool) bool {
	for range 60 {
		if is() {
			return true
		}
		r.Pass(2 * time.Second)
	}
	return is()
}

// Name returns a name that no other run and no other rule uses.
func (r *Run) Name(of string) string { return r.Prefix + of }

func (r *Run) execute(part func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s, is := p.(stopped)
			if !is {
				panic(p)
			}
			err = s.error
		}
	}()
	part()
	return nil
}

const cleanTime = 90 * time.Second

// clean removes what the check made, the newest first.
func (r *Run) clean(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
	defer cancel()
	for i := range r.cleanup {
		err = errors.Join(err, r.cleanup[len(r.cleanup)-1-i](ctx))
	}
	if r.cleanup = nil; err != nil {
		return fmt.Errorf("not everything of %s is removed, conform clean finds the rest: %w", r.Rule.ID, err)
	}
	return nil
}

// check checks a rule in a world, or begins or continues its check.
func check(ctx context.Context, w World, rule Rule, before Result) (result Result, err error) {
	r := &Run{World: w, Context: ctx, Rule: rule, State: before.State}
	result = Result{Rule: rule.ID}
	if rule.Offline != "" && !w.double() {
		result.Outcome, result.Detail = Offline, rule.Offline
		return result, nil
	}
	if rule.Begin != nil && before.Outcome != Waiting {
		err = r.execute(func() { r.State = rule.Begin(r) })
		result.Due = w.Now().Add(rule.Wait)
	} else {
		result.Due = before.Due
	}
	wait := result.Due.Sub(w.Now())
	switch {
	case err != nil || rule.Begin == nil:
	case wait > 0 && !w.double():
		result.Outcome, result.State = Waiting, r.State
		return result, nil
	case wait > 0:
		err = r.execute(func() { r.Pass(wait) })
	}
	if err == nil {
		err = r.execute(func() { rule.Check(r) })
	}
	result.Due = time.Time{}
	if ctx.Err() != nil { // the end of the run says nothing about the rule
		return Result{Rule: rule.ID, Outcome: NotBegun}, r.clean(ctx)
	}
	ended := result.judge(r, err)
	return result, errors.Join(ended, r.clean(ctx))
}

func shorten(text string) string {
	const most = 160
	if len(text) <= most {
		return text
	}
	return text[:most/2] + " ... " + text[len(text)-most/2:]
}

// judge sets the outcome of a check, and returns the error that ends the run.
func (r *Result) judge(run *Run, err error) (ended error) {
	kind := kindOf(err)
	needs, isMissing := errors.AsType[missing](err)
	switch {
	case isMissing:
		r.Outcome, r.Detail = needs.outcome, needs.why
	case kind == lacks:
		code, status := codeOf(err)
		r.Outcome, r.Detail = Lacking, fmt.Sprintf("status %d %s", status, code)
	case kind == refused:
		r.Outcome, r.Detail = Broken, "refused: "+err.Error()
	case err != nil:
		r.Outcome, r.Detail = Failed, err.Error()
		return fmt.Errorf("%s: %w", r.Rule, err)
	case len(run.broken) > 0:
		r.Outcome, r.Detail = Broken, shorten(run.broken[0])
	default:
		r.Outcome = Kept
	}
	return nil
}
