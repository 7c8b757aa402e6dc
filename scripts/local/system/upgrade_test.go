package system_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/lambda/lambdatest"
	"orderonce/adapters/stripe/stripetest"
	"orderonce/domain/order"
	"orderonce/domain/refund"
	"orderonce/scripts/local/incidents"
	"orderonce/scripts/local/system"
	"orderonce/scripts/local/system/systemtest"
)

// earlier is the commit of the release before this one. From 0.2.0 on it is that of the
// last tag.
const earlier = "0858ae117c5ab62ec6b7bf0a837343841db8e6b9"

// TestAnUpgradeUnderWay runs the functions of the earlier release and those of this one
// over one table and one Stripe. One of them leaves behind orders and refunds that were
// claimed, bound, in doubt or waiting; the other ends them. An upgrade and the way back
// keep every promise of TestKilled, and a repeated message changes nothing.
func TestAnUpgradeUnderWay(t *testing.T) {
	t.Parallel()
	w := world{systemtest.New(t)}
	before, after := functionsOf(t, history(t, earlier)), functionsOf(t, "../../..")
	for claim, roll := range map[string][]string{
		"an upgrade ends what the earlier release began": {before, after},
		"the earlier release ends what this one began":   {after, before},
	} {
		for _, later := range []time.Duration{time.Hour, 26 * time.Hour} { // Stripe forgets a key in a day
			t.Run(fmt.Sprint(claim, ", ", later), func(t *testing.T) {
				t.Parallel()
				o := incidents.Unhurried(stocked(1000, system.Options{
					Webhook: filepath.Join(after, "webhook"), Reconcile: filepath.Join(after, "reconcile"),
					Env:        map[string]string{"STOCK_HOLD": "1ns", "STRIPE_TIMEOUT": "5s"}, // a run of reconcile has 30 s
					Deliveries: func(stripetest.Event) []time.Duration { return []time.Duration{30 * time.Hour} },
				}))
				o.Visibility = 10 * time.Minute // until the clock is moved
				k := newTrap(t, w, o)
				k.upgrade(roll, cellsOf(later), later)
			})
		}
	}
}

// upgrade leaves everything under way with the functions of one folder, and ends it with
// those of another.
func (k *trap) upgrade(roll []string, cells []cell, later time.Duration) {
	k.t.Helper()
	k.deploy(roll[0])
	k.post(bodyWith("bank", needsUser), bodyWith("leaves", needsUser), bodyWith("days", takesDays))
	b := k.settle()
	k.killEach(cells)
	k.deploy(roll[1])
	k.deliverAgain(cells, later)
	k.Stripe.Machine(func(m *stripetest.Machine) {
		systemtest.Must(k.t, m.CustomerPays(k.Stripe.Now(), string(b.Orders["bank"].Intent)))
		systemtest.Must(k.t, m.Settle(k.Stripe.Now(), string(b.Orders["days"].Intent), true))
	})
	for range 2 {
		k.pass(2 * day)
		systemtest.Must(k.t, k.Heard(k.t.Context()))
	}
	for range 2 { // the second looks at what the first canceled
		systemtest.Must(k.t, k.Look(k.t.Context()))
	}
	k.repeatAll(cells)
	k.compare(cells)
	b = k.settle()
	for id, want := range map[order.ID]outcome{
		"bank": {order.Paid, 1, 2}, "days": {order.Paid, 1, 2}, "leaves": {order.Canceled, 0, 2},
	} {
		k.want(b, id, want)
	}
}

// repeatAll sends every message again, and another order under an id that is taken, which
// alone is parked.
func (k *trap) repeatAll(cells []cell) {
	k.t.Helper()
	for _, c := range cells {
		k.post(c.body())
	}
	k.post(bodyWith(cells[0].orderID(), "pm_card_mastercard"))
	k.drain()
	dead, err := k.Dead()
	systemtest.Must(k.t, err)
	parked := map[order.Reason]int{}
	for _, m := range dead {
		_, letter := system.DeadLetterOf(m)
		parked[letter.Reason]++
	}
	delete(parked, refund.ReasonUnknown) // compare checks which
	if diff := cmp.Diff(parked, map[order.Reason]int{order.ReasonConflict: 1}); diff != "" {
		k.t.Errorf("parked (-got +want):\n%s", diff)
	}
}

func (o *running) deploy(folder string) {
	o.t.Helper()
	for name, host := range map[string]*lambdatest.Host{
		"order": o.Function, "refund": o.Refund, "webhook": o.Webhook, "reconcile": o.Reconcile,
	} {
		systemtest.Must(o.t, host.Replace(filepath.Join(folder, name)))
	}
}

func functionsOf(t *testing.T, root string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for _, name := range []string{"order", "refund", "webhook", "reconcile"} {
		program := lambdatest.Program{Root: root, Package: "./functions/" + name}
		systemtest.Must(t, program.Build(t.Context(), filepath.Join(folder, name)))
	}
	return folder
}

func history(t *testing.T, commit string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	const extract = `set -o pipefail; git -C ../../.. archive "$0" | tar -x -C "$1"`
	out, err := exec.CommandContext(t.Context(), "bash", "-c", extract, commit, folder).CombinedOutput()
	if err != nil {
		t.Fatalf("the test needs git's history, in a shallow clone git fetch --unshallow: %v: %s", err, out)
	}
	return folder
}
