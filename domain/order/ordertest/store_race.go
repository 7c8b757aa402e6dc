package ordertest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"orderonce/domain/order"
)

// racers is the number of concurrent goroutines.
const racers = 50

func racePromises() []promise {
	return []promise{
		{"of fifty concurrent begins one succeeds", storeTest.oneBegins},
		{"of fifty concurrent begins of a refused order one succeeds", storeTest.oneReopens},
		{"of fifty concurrent attempts only the last binds its intent", storeTest.lastBinds},
		{"fifty concurrent binds of one claim bind one intent", storeTest.oneBinds},
		{"fifty concurrent finishes record one outcome and one event", storeTest.oneFinishes},
	}
}

// race calls do concurrently with 0 to racers-1 and returns the errors.
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

// winners returns the indexes of the racers without an error. Every other error must
// satisfy lost.
func (x storeTest) winners(errs []error, lost func(error) bool) (won []int) {
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

func isClaimLost(err error) bool { return errors.Is(err, order.ErrClaimLost) }

func racerIntent(i int) order.IntentID { return order.IntentID(fmt.Sprintf("pi_%d", i)) }

func (x storeTest) oneBegins() {
	won := x.winners(race(func(i int) error {
		_, err := x.Begin(x.Context(), x.order, lease(fmt.Sprintf("racer %d", i), at(0)))
		return err
	}), func(err error) bool { return errors.As(err, new(*order.InProgressError)) })
	r := x.mustLoad()
	if len(won) != 1 || r.Attempt != 1 || r.Owner != fmt.Sprintf("racer %d", won[0]) {
		x.Errorf("got winners %v, attempt %d of %q, want one winner's first attempt", won, r.Attempt, r.Owner)
	}
}

func (x storeTest) oneReopens() {
	x.mustFinish(order.Refused)
	won := x.winners(race(func(i int) error {
		_, err := x.Begin(x.Context(), x.order, lease(fmt.Sprintf("racer %d", i), at(time.Minute)))
		return err
	}), func(err error) bool { return errors.As(err, new(*order.InProgressError)) })
	r := x.mustLoad()
	if len(won) != 1 || r.Attempt != 2 || r.Owner != fmt.Sprintf("racer %d", won[0]) || len(r.Events) != 2 {
		x.Errorf("got winners %v, attempt %d of %q and events %v, want one winner's second attempt and two events",
			won, r.Attempt, r.Owner, r.Events)
	}
}

func (x storeTest) lastBinds() {
	claims := make([]order.Claim, racers)
	for i := range claims {
		claims[i] = x.mustBegin(lease(fmt.Sprintf("racer %d", i), at(time.Duration(i)*time.Hour)))
	}
	won := x.winners(race(func(i int) error {
		return x.Bind(x.Context(), claims[i], intent(racerIntent(i)), at(1000*time.Hour))
	}), isClaimLost)
	if got := x.mustLoad().Intent; len(won) != 1 || won[0] != racers-1 || got != racerIntent(racers-1) {
		x.Errorf("got winners %v and intent %s, want only the last attempt's", won, got)
	}
}

func (x storeTest) oneBinds() {
	c := x.mustBegin(lease("first", at(0)))
	won := x.winners(
		race(func(i int) error { return x.Bind(x.Context(), c, intent(racerIntent(i)), at(time.Second)) }),
		isClaimLost,
	)
	if got := x.mustLoad().Intent; len(won) != 1 || got != racerIntent(won[0]) {
		x.Errorf("got winners %v and intent %s, want one winner and its intent", won, got)
	}
}

func (x storeTest) oneFinishes() {
	c := x.mustBind("pi_1")
	statuses := order.Open.Next()
	won := x.winners(race(func(i int) error {
		o := order.Outcome{Status: statuses[i%len(statuses)], Intent: "pi_1"}
		return x.Finish(x.Context(), c, o, at(time.Second))
	}), isClaimLost)
	r := x.mustLoad()
	agreed := 0
	for i := range racers {
		if statuses[i%len(statuses)] == r.Status {
			agreed++
		}
	}
	if len(won) != agreed || len(r.Events) != 1 || r.Seq != 1 {
		x.Errorf("got winners %v and events %v, want the racers with %s, and one event", won, r.Events, r.Status)
	}
	for _, i := range won {
		if statuses[i%len(statuses)] != r.Status {
			x.Errorf("racer %d finished as %s, but the record is %s", i, statuses[i%len(statuses)], r.Status)
		}
	}
}
