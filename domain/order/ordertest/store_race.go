package ordertest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"orderonce/domain/order"
)

// racers is how many goroutines want the same thing.
const racers = 50

func racePromises() []promise {
	return []promise{
		{"of fifty concurrent begins one succeeds", trial.oneBegins},
		{"of fifty concurrent begins of a refused order one succeeds", trial.oneReopens},
		{"of fifty concurrent attempts only the last binds its intent", trial.lastBinds},
		{"fifty concurrent binds of one claim bind one intent", trial.oneBinds},
		{"fifty concurrent finishes record one outcome and one event", trial.oneFinishes},
	}
}

// race runs do for 0 to racers-1 at once and returns what each returned.
func race(do func(i int) error) []error {
	var (
		errs  = make([]error, racers)
		start = make(chan struct{})
		wg    sync.WaitGroup
	)
	for i := range racers {
		wg.Go(func() {
			<-start
			errs[i] = do(i)
		})
	}
	close(start)
	wg.Wait()
	return errs
}

// winners lists who got no error; every other one must have lost as lost says.
func (x trial) winners(errs []error, lost func(error) bool) (won []int) {
	x.Helper()
	for i, err := range errs {
		switch {
		case err == nil:
			won = append(won, i)
		case !lost(err):
			x.Errorf("racer %d: got an unexpected error: %v", i, err)
		}
	}
	return won
}

func isFenced(err error) bool { return errors.Is(err, order.ErrClaimLost) }

func racerIntent(i int) order.IntentID { return order.IntentID(fmt.Sprintf("pi_%d", i)) }

func (x trial) oneBegins() {
	won := x.winners(race(func(i int) error {
		_, err := x.Begin(x.Context(), x.order, lease(fmt.Sprintf("racer %d", i), at(0)))
		return err
	}), func(err error) bool { return errors.As(err, new(*order.InProgressError)) })
	r := x.load()
	if len(won) != 1 || r.Attempt != 1 || r.Owner != fmt.Sprintf("racer %d", won[0]) {
		x.Errorf("got winners %v, attempt %d of %q, want one winner's first attempt", won, r.Attempt, r.Owner)
	}
}

func (x trial) oneReopens() {
	x.finished(order.StatusRefused)
	won := x.winners(race(func(i int) error {
		_, err := x.Begin(x.Context(), x.order, lease(fmt.Sprintf("racer %d", i), at(time.Minute)))
		return err
	}), func(err error) bool { return errors.As(err, new(*order.InProgressError)) })
	r := x.load()
	if len(won) != 1 || r.Attempt != 2 || r.Owner != fmt.Sprintf("racer %d", won[0]) || len(r.Events) != 2 {
		x.Errorf("got winners %v, attempt %d of %q and events %v, want one winner's second attempt and two events",
			won, r.Attempt, r.Owner, r.Events)
	}
}

func (x trial) lastBinds() {
	claims := make([]order.Claim, racers)
	for i := range claims {
		claims[i] = x.begin(lease(fmt.Sprintf("racer %d", i), at(time.Duration(i)*time.Hour)))
	}
	won := x.winners(race(func(i int) error {
		return x.Bind(x.Context(), claims[i], intent(racerIntent(i)), at(1000*time.Hour))
	}), isFenced)
	if got := x.load().Intent; len(won) != 1 || won[0] != racers-1 || got != racerIntent(racers-1) {
		x.Errorf("got winners %v and intent %s, want only the last attempt's", won, got)
	}
}

func (x trial) oneBinds() {
	c := x.begin(lease("first", at(0)))
	won := x.winners(
		race(func(i int) error { return x.Bind(x.Context(), c, intent(racerIntent(i)), at(time.Second)) }),
		isFenced,
	)
	if got := x.load().Intent; len(won) != 1 || got != racerIntent(won[0]) {
		x.Errorf("got winners %v and intent %s, want one winner and its intent", won, got)
	}
}

func (x trial) oneFinishes() {
	c := x.bound("pi_1")
	statuses := order.Open.Next()
	won := x.winners(race(func(i int) error {
		o := order.Outcome{Status: statuses[i%len(statuses)], Intent: "pi_1"}
		return x.Finish(x.Context(), c, o, at(time.Second))
	}), isFenced)
	r := x.load()
	agreed := 0
	for i := range racers {
		if statuses[i%len(statuses)] == r.Status {
			agreed++
		}
	}
	if len(won) != agreed || len(r.Events) != 1 || r.Seq != 1 {
		x.Errorf("got winners %v and events %v, want those who said %s, and one event", won, r.Events, r.Status)
	}
	for _, i := range won {
		if statuses[i%len(statuses)] != r.Status {
			x.Errorf("racer %d was told that the order is %s, but it is %s", i, statuses[i%len(statuses)], r.Status)
		}
	}
}
