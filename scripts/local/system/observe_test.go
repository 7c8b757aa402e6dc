package system_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/scripts/local/system"
	"orderonce/scripts/local/system/systemtest"
)

func TestASystemReportsItsOrderFunctionAndItsWebhooks(t *testing.T) {
	t.Parallel()
	w := world{systemtest.New(t)}
	instances, webhooks := make(chan lambdatest.Event, 99), make(chan stripetest.Sent, 99)
	s := w.start(t, generous(system.Options{
		Webhook:         w.Build(t, "functions/webhook"),
		ObserveInstance: func(e lambdatest.Event) { instances <- e },
		ObserveWebhook:  func(sent stripetest.Sent) { webhooks <- sent },
	}))
	s.post(bodyWith("observed", "pm_card_visa"))
	s.settle()
	must(t, s.Heard(t.Context()))
	must(t, s.Function.Close())
	close(instances)
	var got []lambdatest.Change
	for e := range instances {
		got = append(got, e.Change)
		if e.Change == lambdatest.Invoked && !strings.Contains(string(e.Payload), "observed") {
			t.Errorf("payload %s, want the message", e.Payload)
		}
	}
	want := []lambdatest.Change{lambdatest.Started, lambdatest.Invoked, lambdatest.Answered, lambdatest.Closed}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("instances of the order function, without those of the webhook (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(s.Events.Sent(), []stripetest.Sent{<-webhooks}); diff != "" {
		t.Errorf("webhooks (-sent +observed):\n%s", diff)
	}
}
