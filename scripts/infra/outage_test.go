package infra_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"orderonce/adapters/sqs"
	"orderonce/domain/order"
)

// period is the duration of one datapoint of an alarm.
const period = 5 * time.Minute

// alarm is an alarm of alarms.tf. It is raised if at least Bad of the last Of periods
// exceed Above.
type alarm struct {
	Above   float64
	Bad, Of int
}

// alarmNamed returns an alarm of alarms.tf. Its threshold must be a constant.
func alarmNamed(t *testing.T, wanted string) alarm {
	t.Helper()
	var found alarm
	for _, locals := range parse(t).blocks("locals") {
		if locals.Attributes["alarms"] == nil {
			continue
		}
		fields(locals.attribute(t, "alarms").Expr, func(name string, value hclsyntax.Expression) {
			object, ok := value.(*hclsyntax.ObjectConsExpr)
			if !ok || name != wanted {
				return
			}
			for _, item := range object.Items {
				v, problems := item.ValueExpr.Value(nil)
				switch key := hcl.ExprAsKeyword(item.KeyExpr); {
				case problems.HasErrors():
				case key == "above":
					found.Above, _ = v.AsBigFloat().Float64()
				case key == "periods":
					found.Bad, found.Of = integer(v.AsValueSlice()[0]), integer(v.AsValueSlice()[1])
				}
			}
		})
	}
	if found.Of == 0 {
		t.Fatalf("alarm %s: not found in alarms.tf", wanted)
	}
	return found
}

// firstAt returns when datapoints by period first raise the alarm, and whether they do. A
// missing datapoint is not breaching, as in CloudWatch with treat_missing_data =
// notBreaching.
func (a alarm) firstAt(data map[int]float64) (time.Duration, bool) {
	last := slices.Max(append(keys(data), 0))
	for end := range last + 1 {
		bad := 0
		for at := end; at > end-a.Of; at-- {
			if value, ok := data[at]; ok && value > a.Above {
				bad++
			}
		}
		if bad >= a.Bad {
			return time.Duration(end+1) * period, true
		}
	}
	return 0, false
}

func keys(data map[int]float64) (all []int) {
	for at := range data {
		all = append(all, at)
	}
	return all
}

// deliveries has the function's metrics by period.
type deliveries struct {
	received, failed map[int]float64
	oldest           map[int]float64 // WaitingAge, milliseconds
}

// simulate sends an order at every interval until sending is over, and fails every
// delivery until outage is over. jitter is the random part of the delays, from 0 to 1.
func simulate(reason order.Reason, every, sending, outage time.Duration, jitter float64) deliveries {
	d := deliveries{map[int]float64{}, map[int]float64{}, map[int]float64{}}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for sent := time.Duration(0); sent < sending; sent += every {
		at := sent
		for count := 1; ; count++ {
			bucket := int(at / period)
			d.received[bucket]++
			if at >= outage {
				break
			}
			d.failed[bucket]++
			d.oldest[bucket] = max(d.oldest[bucket], float64((at - sent).Milliseconds()))
			at += sqs.Decide(order.Result{Verdict: order.Redeliver, Reason: reason, Transient: true},
				sqs.Delivery{Count: count, SentAt: start.Add(sent)}, start.Add(at), jitter, sqs.DefaultPolicy()).Delay
		}
	}
	return d
}

// percent returns the result of the expression of store-unavailable and
// provider-unavailable.
func (d deliveries) percent() map[int]float64 {
	all := map[int]float64{}
	for at, failed := range d.failed {
		all[at] = 100 * failed / d.received[at]
	}
	return all
}

func TestAnOutageRaisesAnAlarmWithinAnHour(t *testing.T) {
	t.Parallel()
	for name, reason := range map[string]order.Reason{
		"store-unavailable": order.ReasonStore, "provider-unavailable": order.ReasonUnavailable,
	} {
		for _, jitter := range []float64{0, 0.5, 0.99} {
			t.Run(fmt.Sprintf("%s, jitter %v", name, jitter), func(t *testing.T) {
				t.Parallel()
				busy := simulate(reason, time.Second, 3*time.Hour, 3*time.Hour, jitter)
				if at, ok := alarmNamed(t, name).firstAt(busy.percent()); !ok || at > 20*time.Minute {
					t.Errorf("%s, an order per second: got %v, %t, want within 20 minutes", name, at, ok)
				}
				quiet := simulate(reason, 24*time.Hour, time.Minute, 3*time.Hour, jitter)
				if at, ok := alarmNamed(t, "orders-retrying").firstAt(quiet.oldest); !ok || at > time.Hour {
					t.Errorf("orders-retrying, a single order: got %v, %t, want within an hour", at, ok)
				}
			})
		}
	}
}

// A short throttle needs no operator: the orders are redelivered after seconds.
func TestAThrottleOfFourMinutesRaisesNoAlarm(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"store-unavailable", "provider-unavailable"} {
		for _, jitter := range []float64{0, 0.5, 0.99} {
			throttled := simulate(order.ReasonUnavailable, time.Second, time.Hour, 4*time.Minute, jitter)
			if at, ok := alarmNamed(t, name).firstAt(throttled.percent()); ok {
				t.Errorf("%s: got an alarm after %v, want none", name, at)
			}
			if at, ok := alarmNamed(t, "orders-retrying").firstAt(throttled.oldest); ok {
				t.Errorf("orders-retrying: got an alarm after %v, want none", at)
			}
		}
	}
}

// percent computes the same as these expressions.
func TestTheAlarmsOnReasonsUseTheExpressionOfTheSimulation(t *testing.T) {
	t.Parallel()
	text := read(t, "terraform/alarms.tf")
	const expression = `"100 * failed / received"`
	if got, want := strings.Count(text, expression), 2; got != want {
		t.Errorf("alarms.tf: got the expression %s in %d alarms, want %d", expression, got, want)
	}
}
