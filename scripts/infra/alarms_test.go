package infra_test

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"

	"orderonce/adapters/sqs"
	"orderonce/domain/order"
)

// period is the duration of one datapoint of most alarms.
const period = 5 * time.Minute

// alarm is an alarm of the module. It is raised if at least bad of the last of periods
// exceed above, or miss below. Metrics are by id: source, name, statistic and dimensions.
type alarm struct {
	name, expression string
	metrics          map[string]string
	above, below     float64
	bad, of          int
}

// alarms returns those of the module. Terraform's tests compare the list with the plan.
func alarms(t *testing.T) map[string]alarm {
	t.Helper()
	all := map[string]alarm{}
	head := regexp.MustCompile(`^([\w-]+): ([<>]) (\d+) in (\d+) of (\d+) x \d+ min$`)
	for line := range strings.Lines(strings.Join(matches(t, `(?s)(.*)`, module+"tests/alarms/*.txt"), "")) {
		parts := strings.Split(strings.TrimSpace(line), "; ")
		m := head.FindStringSubmatch(parts[0])
		if m == nil {
			t.Fatalf("tests/alarms: %q", line)
		}
		a := alarm{name: m[1], expression: "m", metrics: map[string]string{}, above: absent, below: absent}
		limit := &a.above
		if m[2] == "<" {
			limit = &a.below
		}
		if _, err := fmt.Sscan(strings.Join(m[3:], " "), limit, &a.bad, &a.of); err != nil {
			t.Fatal(err)
		}
		for _, part := range parts[1:] {
			if id, metric, is := strings.Cut(part, ": "); is {
				a.metrics[id] = metricOf(metric)
			} else {
				a.expression = part
			}
		}
		all[a.name] = a
	}
	return all
}

// metricOf returns a metric of the list as series have it.
func metricOf(listed string) string {
	words := strings.Fields(listed)
	source, dimensions := "app", []string{}
	for _, dimension := range words[3:] {
		name, value, _ := strings.Cut(dimension, "=")
		value = strings.TrimPrefix(value, "orderonce-dev-")
		switch name {
		case "FunctionName":
			source = "lambda/" + value
		case "QueueName":
			source = "queue/" + value
		case "ApiId":
			source = map[string]string{"orders": "api/intake", "a1b2c3d4e5": "api/webhook"}[value]
		case "Scope":
		default:
			dimensions = append(dimensions, dimension)
		}
	}
	return strings.Join(append([]string{source, words[1], words[2]}, dimensions...), " ")
}

// firstAt returns when datapoints by period first raise the alarm, and whether they do. A
// missing datapoint is not breaching, as in CloudWatch with treat_missing_data =
// notBreaching.
func (a alarm) firstAt(data map[int]float64) (time.Duration, bool) {
	last := slices.Max(append(slices.Collect(maps.Keys(data)), 0))
	for end := range last + 1 {
		bad := 0
		for at := end; at > end-a.of; at-- {
			if value, ok := data[at]; ok && value > a.above {
				bad++
			}
		}
		if bad >= a.bad {
			return time.Duration(end+1) * period, true
		}
	}
	return 0, false
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

// A short throttle needs no operator: the orders are redelivered after seconds.
func TestAnOutageRaisesAnAlarmWithinAnHourAndAThrottleOfFourMinutesNone(t *testing.T) {
	found := alarms(t)
	retrying := found["orders-retrying"]
	for name, reason := range map[string]order.Reason{
		"store-unavailable": order.ReasonStore, "provider-unavailable": order.ReasonUnavailable,
	} {
		failing := found[name]
		if want := "100 * failed / received"; failing.expression != want {
			t.Errorf("%s: expression: got %q, want %q, which percent computes", name, failing.expression, want)
		}
		for _, jitter := range []float64{0, 0.5, 0.99} {
			busy := simulate(reason, time.Second, 3*time.Hour, 3*time.Hour, jitter)
			if at, ok := failing.firstAt(busy.percent()); !ok || at > 20*time.Minute {
				t.Errorf("%s, an order per second: got %v, %t, want within 20 minutes", name, at, ok)
			}
			quiet := simulate(reason, 24*time.Hour, time.Minute, 3*time.Hour, jitter)
			if at, ok := retrying.firstAt(quiet.oldest); !ok || at > time.Hour {
				t.Errorf("orders-retrying, a single order: got %v, %t, want within an hour", at, ok)
			}
			throttled := simulate(reason, time.Second, time.Hour, 4*time.Minute, jitter)
			_, fails := failing.firstAt(throttled.percent())
			if _, retries := retrying.firstAt(throttled.oldest); fails || retries {
				t.Errorf("a throttle: got %s %t, orders-retrying %t, want no alarm", name, fails, retries)
			}
		}
	}
}

// series has the values that metrics have in each period while a failure lasts, by
// source, name, statistic and dimensions as in the alarms. A metric that is not in it has
// no value.
type series map[string]float64

// Metrics of a queue.
const (
	age     = " ApproximateAgeOfOldestMessage Maximum"
	letters = " ApproximateNumberOfMessagesVisible Maximum"
)

// hours is more milliseconds or seconds than any alarm on an age waits for.
const hours = 1e10

// healthy is what the metrics of a busy deployment show. WaitingAge and the like have no
// value, because nothing comes back.
func healthy() series {
	return series{
		"app Received Sum": 100, "app Settled Sum Status=paid": 90, "app Published Sum": 90,
		"app OrderAge p99": 1000, "app OrderAge SampleCount": 100,
		"app Receipts Sum Function=receipt Result=sent": 100,
		"lambda/order Errors Sum":                       0, "lambda/order Duration p99": 1000, "lambda/refund Errors Sum": 0,
		"lambda/reconcile Errors Sum": 0, "lambda/reconcile Invocations Sum": 1, "lambda/intake Errors Sum": 0,
		"lambda/publish Errors Sum": 0, "lambda/publish IteratorAge Maximum": 1000, "lambda/receipt Errors Sum": 0,
		"api/webhook Count Sum": 100, "api/webhook 5xx Sum": 0, "api/webhook 4xx Sum": 0,
		"api/intake Count Sum": 100, "api/intake 5xx Sum": 0,
		"queue/orders" + age: 1, "queue/refunds" + age: 1, "queue/receipts" + age: 1,
	}
}

// absent is the value of a metric that a failure ends.
var absent = math.NaN() //nolint:gochecknoglobals // a constant that the language has not

// lastingFailures has, for each failure and function, what it does to the metrics. A
// function without an entry cannot have the failure.
func lastingFailures() map[string]map[string]series {
	api := func(name string) series { return series{"api/" + name + " 5xx Sum": 100} }
	floods := series{"api/webhook Count Sum": 15000, "api/webhook 4xx Sum": 14900}
	return map[string]map[string]series{
		"crashes or does not start": {
			"order":     {"lambda/order Errors Sum": 5, "queue/orders" + age: hours},
			"refund":    {"lambda/refund Errors Sum": 5, "queue/refunds" + age: hours},
			"webhook":   api("webhook"),
			"reconcile": {"lambda/reconcile Errors Sum": 1},
			"publish":   {"lambda/publish Errors Sum": 5, "lambda/publish IteratorAge Maximum": hours},
			"intake":    {"lambda/intake Errors Sum": 5, "api/intake 5xx Sum": 100},
			"receipt":   {"lambda/receipt Errors Sum": 5, "queue/receipts" + age: hours},
		},
		"is throttled": {
			"order":     {"lambda/order Throttles Sum": 5, "queue/orders" + age: hours},
			"refund":    {"lambda/refund Throttles Sum": 5, "queue/refunds" + age: hours},
			"webhook":   api("webhook"),
			"reconcile": {"lambda/reconcile Invocations Sum": absent},
			"publish":   {"lambda/publish Throttles Sum": 5, "lambda/publish IteratorAge Maximum": hours},
			"intake":    {"lambda/intake Throttles Sum": 5, "api/intake 5xx Sum": 100},
			"receipt":   {"lambda/receipt Throttles Sum": 5, "queue/receipts" + age: hours},
		},
		"its trigger is off": {
			"order":     {"queue/orders" + age: hours, "app Received Sum": absent, "app Settled Sum Status=paid": absent},
			"refund":    {"queue/refunds" + age: hours},
			"webhook":   {"api/webhook Count Sum": absent, "api/webhook 5xx Sum": absent},
			"reconcile": {"lambda/reconcile Invocations Sum": absent},
			"publish":   {"lambda/publish IteratorAge Maximum": absent, "app Published Sum": absent},
			"intake":    {"api/intake Count Sum": absent, "api/intake 5xx Sum": absent},
			"receipt":   {"queue/receipts" + age: hours},
		},
		"strangers flood its URL": {"webhook": floods},
		"messages come back": {
			"order":   {"app WaitingAge Maximum": hours},
			"refund":  {"app WaitingAge Maximum Function=refund": hours},
			"receipt": {"app WaitingAge Maximum Function=receipt": hours},
		},
		"dead letters": {
			"order": {"queue/orders-dead" + letters: 1}, "publish": {"queue/unpublished" + letters: 1},
			"receipt": {"queue/receipts-dead" + letters: 1}, "refund": {"queue/refunds-dead" + letters: 1},
		},
		"a queue's setting is wrong": {
			"order":   {"app QueueMisconfigured Sum Setting=retention": 1},
			"receipt": {"app QueueMisconfigured Sum Function=receipt Setting=retention": 1},
			"refund":  {"app QueueMisconfigured Sum Function=refund Setting=retention": 1},
		},
		"DynamoDB is down": {
			"order":     {"app Redelivered Sum Reason=store_unavailable": 100, "app WaitingAge Maximum": hours},
			"refund":    {"app WaitingAge Maximum Function=refund": hours},
			"webhook":   {"app Webhooks Sum Result=unavailable": 100, "api/webhook 5xx Sum": 100},
			"reconcile": {"lambda/reconcile Errors Sum": 1},
			"intake":    api("intake"),
			"receipt":   {"app WaitingAge Maximum Function=receipt": hours},
		},
		"Stripe is down": {
			"order":     {"app Redelivered Sum Reason=provider_unavailable": 100, "app WaitingAge Maximum": hours},
			"refund":    {"app WaitingAge Maximum Function=refund": hours},
			"webhook":   {"app Webhooks Sum Result=unavailable": 100, "api/webhook 5xx Sum": 100},
			"reconcile": {"app Overdue Maximum": hours},
			"receipt":   {"app WaitingAge Maximum Function=receipt": hours},
		},
		"Stripe rejects the key": {
			"order":     {"app Redelivered Sum Reason=misconfigured": 100, "app WaitingAge Maximum": hours},
			"refund":    {"app WaitingAge Maximum Function=refund": hours},
			"webhook":   {"app Webhooks Sum Result=unavailable": 100, "api/webhook 5xx Sum": 100},
			"reconcile": {"app Reconciled Sum Result=failed": 10},
			"receipt":   {"app WaitingAge Maximum Function=receipt": hours},
		},
		"SES rejects or is down": {
			"receipt": {"app WaitingAge Maximum Function=receipt": hours, "app Receipts Sum Function=receipt Result=failed": 50},
		},
		"the event bus is down":   {"publish": {"lambda/publish IteratorAge Maximum": hours}},
		"the order queue is down": {"intake": api("intake")},
	}
}

// result returns the value of an expression of CloudWatch over metrics by id. HCL has the
// same syntax. NaN is no result, which a missing metric causes outside FILL.
func result(t *testing.T, expression string, metrics series) float64 {
	t.Helper()
	scope := &hcl.EvalContext{Variables: map[string]cty.Value{}, Functions: map[string]function.Function{
		"FILL": stdlib.CoalesceFunc,
		"IF": function.New(&function.Spec{
			Params: []function.Parameter{
				{Name: "if", Type: cty.Bool}, {Name: "then", Type: cty.Number}, {Name: "else", Type: cty.Number},
			},
			Type: function.StaticReturnType(cty.Number),
			Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
				if args[0].True() {
					return args[1], nil
				}
				return args[2], nil
			},
		}),
	}}
	for id, v := range metrics {
		scope.Variables[id] = cty.NullVal(cty.Number)
		if !math.IsNaN(v) {
			scope.Variables[id] = cty.NumberFloatVal(v)
		}
	}
	parsed, problems := hclsyntax.ParseExpression([]byte(expression), "", hcl.InitialPos)
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	v, problems := parsed.Value(scope)
	if problems.HasErrors() || v.IsNull() {
		return absent
	}
	n, _ := v.AsBigFloat().Float64()
	return n
}

// raised reports whether an alarm is raised while every period has the values of s. A
// lasting failure fills every period, so only the threshold matters.
func (a alarm) raised(t *testing.T, s series) bool {
	t.Helper()
	values := series{}
	for id, metric := range a.metrics {
		values[id] = absent
		if v, ok := s[metric]; ok {
			values[id] = v
		}
	}
	v := result(t, a.expression, values)
	return v > a.above || v < a.below || !math.IsNaN(a.below) && math.IsNaN(v)
}

// alarmsRaised returns the alarms that a failure raises beside a healthy deployment.
func alarmsRaised(t *testing.T, all map[string]alarm, failure series) (names []string) {
	t.Helper()
	s := healthy()
	maps.Copy(s, failure)
	for name, a := range all {
		if a.raised(t, s) {
			if strings.HasPrefix(name, "queue-") {
				name = "queue-*" // one for each setting
			}
			names = append(names, "`"+name+"`")
		}
	}
	return set(names)
}

// essential returns the alarms that alarms = "essential" creates.
func essential(t *testing.T) (names []string) {
	t.Helper()
	for _, list := range matches(t, `(?s)essential += \[(.*?)\]`, module+"*.tf") {
		names = append(names, regexp.MustCompile(`[a-z-]+`).FindAllString(list, -1)...)
	}
	return names
}

func TestEveryLastingFailureRaisesTheAlarmsThatTheReferenceLists(t *testing.T) {
	all := alarms(t)
	kept := essential(t)
	for _, name := range kept {
		if _, ok := all[name]; !ok {
			t.Errorf("essential: no alarm %q", name)
		}
	}
	if names := alarmsRaised(t, all, nil); len(names) > 0 {
		t.Errorf("a healthy deployment raises %s", names)
	}
	rows := strings.Split(section(t, "../docs/reference/metrics.md", "\n| failure | order |", "\n\n"), "\n")
	functions := strings.Split(strings.Trim("order |"+rows[0], " |"), " | ")
	got := map[string]map[string]string{}
	for _, row := range rows[2:] {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		got[cells[0]] = map[string]string{}
		for i, cell := range cells[1:] {
			got[cells[0]][functions[i]] = cell
		}
	}
	lost := map[string]bool{"strangers flood its URL": true, "a queue's setting is wrong": true} // the page says so
	want := map[string]map[string]string{}
	for failure, byFunction := range lastingFailures() {
		want[failure] = map[string]string{}
		for _, function := range functions {
			want[failure][function] = "–"
			if s, can := byFunction[function]; can {
				names := alarmsRaised(t, all, s)
				for i, name := range names {
					if slices.Contains(kept, strings.Trim(name, "`")) {
						names[i] = "**" + name + "**"
					}
				}
				cell := strings.Join(append(names, "none")[:max(1, len(names))], ", ")
				if want[failure][function] = cell; cell != "none" && !strings.Contains(cell, "**") && !lost[failure] {
					t.Errorf("%s, %s: %s: no alarm is essential", failure, function, cell)
				}
			}
		}
	}
	if diff := cmp.Diff(got, want); diff != "" || len(functions) != 7 {
		t.Errorf("alarms of lasting failures (-metrics.md +infra/terraform):\n%s", diff)
	}
}

// Anybody can send unsigned requests. They must not hide that Stripe's fail.
func TestStrangersCannotSwitchOffTheAlarmsOfTheWebhook(t *testing.T) {
	all := alarms(t)
	for _, unsigned := range []float64{0, 60, 3000} {
		names := alarmsRaised(t, all, series{
			"api/webhook Count Sum": 4 + unsigned, "api/webhook 4xx Sum": unsigned, "api/webhook 5xx Sum": 4,
			"app Webhooks Sum Result=unavailable": 4,
		})
		if diff := cmp.Diff(names, []string{"`webhook-failing`", "`webhook-unavailable`"}); diff != "" {
			t.Errorf("%v unsigned requests, alarms (-got +want):\n%s", unsigned, diff)
		}
	}
}
