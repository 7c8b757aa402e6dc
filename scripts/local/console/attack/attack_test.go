package attack_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/lambda/lambdatest"
	"orderonce/adapters/sqs/orders"
	"orderonce/scripts/local/console"
	"orderonce/scripts/local/console/attack"
	"orderonce/scripts/local/console/watch"
	"orderonce/scripts/local/system"
	"orderonce/scripts/local/system/systemtest"
)

// attacker returns one in front of queues and a Stripe without a function, whose compiler
// fails.
func attacker(t *testing.T) (*attack.Attacker, *watch.Watch) {
	t.Helper()
	w := watch.New(func() time.Time { return time.Unix(0, 0) })
	a := attack.New(w, t.TempDir(), func(context.Context, string, string) error { return errBuild })
	var o system.Options
	a.Hook(&o)
	s := systemtest.Doubles(t, o, time.Now)
	proxy, err := dynamodbtest.NewProxy(t.Context(), "http://127.0.0.1:1") // of a table that does not exist
	systemtest.Must(t, err)
	t.Cleanup(func() { systemtest.Must(t, proxy.Close()) })
	s.Proxy, s.Function = proxy, new(lambdatest.Host)
	a.Start(t.Context(), s)
	t.Cleanup(a.Close)
	return a, w
}

var errBuild = errors.New("the compiler failed")

func TestAnAttackThatIsNotPossibleSaysWhatItNeeds(t *testing.T) {
	for name, want := range map[string]string{
		"again":        "post an order",
		"authenticate": "post one with a card that needs its customer",
		"clear":        "post one with a payment that takes days",
		"redrive":      "post a malformed message",
	} {
		a, _ := attacker(t)
		if _, err := a.Act(t.Context(), name, ""); !errors.Is(err, console.ErrNotNow) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want ErrNotNow and %q", name, err, want)
		}
	}
}

func TestAGuardThatDoesNotCompileIsNotDeployed(t *testing.T) {
	a, w := attacker(t)
	if _, err := a.Act(t.Context(), "no-such", ""); err == nil {
		t.Error("an unknown attack: got no error")
	}
	if _, err := a.Act(t.Context(), console.ActGuard, "no-such"); err == nil || errors.Is(err, errBuild) {
		t.Errorf("an unknown guard: got error %v, want one before it is compiled", err)
	}
	if _, err := a.Act(t.Context(), console.ActGuard, "bind"); !errors.Is(err, errBuild) {
		t.Errorf("got error %v, want the compiler's", err)
	}
	p, _ := w.Picture()
	if c := p.Control; c.Guard != "" || c.Building != "" {
		t.Errorf("got %+v, want no guard missing and none being compiled", c)
	}
}

func TestAStormPostsTheSameOrdersForTheSameSeed(t *testing.T) {
	const n = 2000
	first, other := attack.StormBodies(7, n, 0), attack.StormBodies(8, n, 0)
	again := attack.StormBodies(7, n, 3) // another machine delivers more in the same time
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("the same seed: - first, + again\n%s", diff)
	}
	if cmp.Equal(first, other) {
		t.Error("another seed posts the same orders")
	}
	decoder := orders.NewDecoder()
	invalid := 0
	for _, body := range first {
		if _, err := decoder.Decode(body); err != nil {
			invalid++
		}
	}
	if extra := len(first) - n; extra < n/20 || extra > n/5 || invalid < 5 || invalid > n/20 {
		t.Errorf("of %d orders, got %d messages more and %d invalid ones", n, extra, invalid)
	}
}

func TestOneStormAtATime(t *testing.T) {
	a, _ := attacker(t)
	if _, err := a.Act(t.Context(), console.ActStorm, ""); !errors.Is(err, console.ErrNotNow) {
		t.Errorf("stop without a storm: got error %v, want ErrNotNow", err)
	}
	_, err := a.Act(t.Context(), console.ActStorm, "7")
	systemtest.Must(t, err)
	if _, err := a.Act(t.Context(), console.ActStorm, "8"); !errors.Is(err, console.ErrNotNow) || !strings.Contains(err.Error(), "seed 7") {
		t.Errorf("a second storm: got error %v, want ErrNotNow and the seed of the first", err)
	}
	_, err = a.Act(t.Context(), console.ActStorm, "")
	systemtest.Must(t, err)
}

func TestADeploymentWaitsForTheOneBefore(t *testing.T) {
	building, restored := make(chan struct{}), make(chan error, 1)
	a := attack.New(watch.New(time.Now), t.TempDir(), func(context.Context, string, string) error {
		close(building)
		select {
		case err := <-restored:
			restored <- err
			return errors.New("the guard was put back during the build")
		case <-time.After(50 * time.Millisecond): // enough for the copy of a program that does not exist
			return errBuild
		}
	})
	go func() {
		<-building
		_, err := a.Act(t.Context(), console.ActGuard, "")
		restored <- err
	}()
	if _, err := a.Act(t.Context(), console.ActGuard, "bind"); !errors.Is(err, errBuild) {
		t.Errorf("got %v, want %v", err, errBuild)
	}
	if err := <-restored; err == nil { // there is no program to copy
		t.Error("the guard was put back without a program")
	}
}
