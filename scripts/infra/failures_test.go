package infra_test

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// series has the values that metrics have in each period while a failure lasts, by source
// and name as in alarms.tf. A metric that is not in it has no value.
type series map[string]float64

// hours is more milliseconds or seconds than any alarm on an age waits for.
const hours = 1e10

// healthy is what the metrics of a busy deployment show. WaitingAge and the like have no
// value, because nothing comes back.
func healthy() series {
	return series{
		"app Received": 100, "app_paid Settled": 90, "app Published": 90, "app OrderAge": 1000,
		"lambda Errors": 0, "reconcile Errors": 0, "reconcile Invocations": 1, "publish Errors": 0,
		"intake Errors": 0, "receipt Errors": 0, "publish IteratorAge": 1000, "lambda Duration": 1000,
		"webhook_api Count": 100, "webhook_api 5xx": 0, "webhook_api 4xx": 0,
		"intake_api Count": 100, "intake_api 5xx": 0, `receipts_by_result["sent"] Receipts`: 100,
		"order_queue ApproximateAgeOfOldestMessage": 1, "receipt_queue ApproximateAgeOfOldestMessage": 1,
	}
}

// absent is the value of a metric that a failure ends.
var absent = math.NaN() //nolint:gochecknoglobals // a constant that the language has not

// lastingFailures has, for each failure and function, what it does to the metrics. A
// function without an entry cannot have the failure.
func lastingFailures() map[string]map[string]series {
	const age, letters = " ApproximateAgeOfOldestMessage", " ApproximateNumberOfMessagesVisible"
	api := func(name string) series { return series{name + "_api 5xx": 100} }
	floods := series{"webhook_api Count": 15000, "webhook_api 4xx": 14900}
	return map[string]map[string]series{
		"crashes or does not start": {
			"order":     {"lambda Errors": 5, "order_queue" + age: hours},
			"webhook":   api("webhook"),
			"reconcile": {"reconcile Errors": 1},
			"publish":   {"publish Errors": 5, "publish IteratorAge": hours},
			"intake":    {"intake Errors": 5, "intake_api 5xx": 100},
			"receipt":   {"receipt Errors": 5, "receipt_queue" + age: hours},
		},
		"is throttled": {
			"order":     {"lambda Throttles": 5, "order_queue" + age: hours},
			"webhook":   api("webhook"),
			"reconcile": {"reconcile Invocations": absent},
			"publish":   {"publish Throttles": 5, "publish IteratorAge": hours},
			"intake":    {"intake Throttles": 5, "intake_api 5xx": 100},
			"receipt":   {"receipt Throttles": 5, "receipt_queue" + age: hours},
		},
		"its trigger is off": {
			"order":     {"order_queue" + age: hours, "app Received": absent, "app_paid Settled": absent},
			"webhook":   {"webhook_api Count": absent, "webhook_api 5xx": absent},
			"reconcile": {"reconcile Invocations": absent},
			"publish":   {"publish IteratorAge": absent, "app Published": absent},
			"intake":    {"intake_api Count": absent, "intake_api 5xx": absent},
			"receipt":   {"receipt_queue" + age: hours},
		},
		"strangers flood its URL": {"webhook": floods},
		"messages come back": {
			"order": {"app WaitingAge": hours}, "receipt": {"receipt_app WaitingAge": hours},
		},
		"dead letters": {
			"order": {"dead_queue" + letters: 1}, "publish": {"unpublished_queue" + letters: 1},
			"receipt": {"receipt_dead_queue" + letters: 1},
		},
		"a queue's setting is wrong": {
			"order":   {"app_by_setting[setting] QueueMisconfigured": 1},
			"receipt": {"source QueueMisconfigured": 1},
		},
		"DynamoDB is down": {
			"order":     {`app_by_reason["store_unavailable"] Redelivered`: 100, "app WaitingAge": hours},
			"webhook":   {`app_by_result["unavailable"] Webhooks`: 100, "webhook_api 5xx": 100},
			"reconcile": {"reconcile Errors": 1},
			"intake":    api("intake"),
			"receipt":   {"receipt_app WaitingAge": hours},
		},
		"Stripe is down": {
			"order":     {`app_by_reason["provider_unavailable"] Redelivered`: 100, "app WaitingAge": hours},
			"webhook":   {`app_by_result["unavailable"] Webhooks`: 100, "webhook_api 5xx": 100},
			"reconcile": {"app Overdue": hours},
			"receipt":   {"receipt_app WaitingAge": hours},
		},
		"Stripe rejects the key": {
			"order":     {`app_by_reason["misconfigured"] Redelivered`: 100, "app WaitingAge": hours},
			"webhook":   {`app_by_result["unavailable"] Webhooks`: 100, "webhook_api 5xx": 100},
			"reconcile": {`app_by_result["failed"] Reconciled`: 10},
			"receipt":   {"receipt_app WaitingAge": hours},
		},
		"SES rejects or is down": {
			"receipt": {"receipt_app WaitingAge": hours, `receipts_by_result["failed"] Receipts`: 50},
		},
		"the event bus is down":   {"publish": {"publish IteratorAge": hours}},
		"the order queue is down": {"intake": api("intake")},
	}
}

// formulas are the expressions of alarms.tf, over the ids of their metrics.
func formulas() map[string]func(m series) float64 {
	filled := func(v float64) float64 {
		if math.IsNaN(v) {
			return 0
		}
		return v
	}
	unless := func(few bool, v float64) float64 {
		if few {
			return 0
		}
		return v
	}
	return map[string]func(m series) float64{
		"100 * failed / received": func(m series) float64 { return 100 * m["failed"] / m["received"] },
		"100 * errors / requests": func(m series) float64 { return 100 * m["errors"] / m["requests"] },
		"100 * errors / (requests - FILL(rejected, 0))": func(m series) float64 {
			return 100 * m["errors"] / (m["requests"] - filled(m["rejected"]))
		},
		"100 * failed / (requests - FILL(rejected, 0))": func(m series) float64 {
			return 100 * m["failed"] / (m["requests"] - filled(m["rejected"]))
		},
		"IF(received >= 50, 100 * duplicates / received, 0)": func(m series) float64 {
			return unless(m["received"] < 50, 100*m["duplicates"]/m["received"])
		},
		"IF(settled >= 20, 100 * declined / settled, 0)": func(m series) float64 {
			return unless(m["settled"] < 20, 100*m["declined"]/m["settled"])
		},
		"IF(sent >= 20, 100 * bounced / sent, 0)": func(m series) float64 {
			return unless(m["sent"] < 20, 100*m["bounced"]/m["sent"])
		},
		"IF(FILL(published, 0) == 0, paid, 0)": func(m series) float64 {
			return unless(filled(m["published"]) != 0, m["paid"])
		},
		"join": func(m series) float64 { return filled(m["setting"]) }, // of FILLs over each setting
	}
}

// rule is an alarm as alarms.tf defines it, with its metrics by id.
type rule struct {
	name         string
	metrics      map[string]string
	expression   string
	above, below float64
}

// rules returns every alarm. One that is made for each of several values has the name of
// all, such as "queue-*".
func rules(t *testing.T) (all []rule) {
	t.Helper()
	module, text := parse(t), []byte(read(t, "terraform/alarms.tf"))
	scope := module.defaults.NewChild()
	scope.Variables = map[string]cty.Value{"limit": cty.ObjectVal(map[string]cty.Value{"hours": cty.NumberIntVal(336)})}
	add := func(key, value hclsyntax.Expression) {
		object, is := value.(*hclsyntax.ObjectConsExpr)
		if !is {
			return
		}
		r := rule{name: alarmName(key), metrics: map[string]string{}, above: absent, below: absent}
		for _, item := range object.Items {
			v, _ := item.ValueExpr.Value(scope)
			switch hcl.ExprAsKeyword(item.KeyExpr) {
			case "above":
				r.above, _ = v.AsBigFloat().Float64()
			case "below":
				r.below, _ = v.AsBigFloat().Float64()
			case "metrics":
				r.metrics = metricsOf(item.ValueExpr, text)
			case "expression":
				r.expression = "join"
				if v.IsKnown() && !v.IsNull() {
					r.expression = v.AsString()
				}
			}
		}
		if len(r.metrics) > 0 {
			all = append(all, r)
		}
	}
	for _, locals := range module.blocks("locals") {
		if locals.Attributes["alarms"] == nil {
			continue
		}
		_ = hclsyntax.VisitAll(locals.Attributes["alarms"].Expr, func(n hclsyntax.Node) hcl.Diagnostics {
			switch n := n.(type) {
			case *hclsyntax.ObjectConsExpr:
				for _, item := range n.Items {
					add(item.KeyExpr, item.ValueExpr)
				}
			case *hclsyntax.ForExpr:
				add(n.KeyExpr, n.ValExpr)
			}
			return nil
		})
	}
	return all
}

// alarmName returns the constant start of a key, and "*" for the rest.
func alarmName(key hclsyntax.Expression) string {
	if name := hcl.ExprAsKeyword(key); name != "" {
		return name
	}
	return strings.Join(texts(key)[:min(1, len(texts(key)))], "") + "*"
}

// metricsOf returns the source and the name of each metric: the first argument of each
// merge, and the name in the second.
func metricsOf(metrics hclsyntax.Expression, text []byte) map[string]string {
	all := map[string]string{}
	add := func(key, value hclsyntax.Expression) {
		call, is := value.(*hclsyntax.FunctionCallExpr)
		if !is || call.Name != "merge" {
			return
		}
		source := strings.TrimPrefix(string(call.Args[0].Range().SliceBytes(text)), "local.")
		fields(call.Args[1], func(name string, value hclsyntax.Expression) {
			if name == "name" {
				id := string(key.Range().SliceBytes(text))
				all[id] = source + " " + strings.Join(texts(value), "")
			}
		})
	}
	switch metrics := metrics.(type) {
	case *hclsyntax.ObjectConsExpr:
		for _, item := range metrics.Items {
			add(item.KeyExpr, item.ValueExpr)
		}
	case *hclsyntax.ForExpr:
		add(metrics.KeyExpr, metrics.ValExpr)
	}
	return all
}

// raised reports whether an alarm is raised while every period has the values of s. A
// lasting failure fills every period, so only the threshold matters.
func (r rule) raised(t *testing.T, s series) bool {
	t.Helper()
	values := series{}
	for id, metric := range r.metrics {
		values[id] = absent
		if v, ok := s[metric]; ok {
			values[id] = v
		}
	}
	var v float64
	switch formula := formulas()[r.expression]; {
	case formula != nil:
		v = formula(values)
	case r.expression != "" || len(values) != 1:
		t.Fatalf("alarm %s: add its expression %q to formulas", r.name, r.expression)
	default:
		v = slices.Collect(maps.Values(values))[0]
	}
	return v > r.above || v < r.below || !math.IsNaN(r.below) && math.IsNaN(v)
}

// alarmsRaised returns the alarms that a failure raises beside a healthy deployment.
func alarmsRaised(t *testing.T, all []rule, failure series) (names []string) {
	t.Helper()
	s := healthy()
	maps.Copy(s, failure)
	for _, r := range all {
		if r.raised(t, s) {
			names = append(names, "`"+r.name+"`")
		}
	}
	slices.Sort(names)
	return names
}

func TestEveryLastingFailureRaisesTheAlarmsThatTheReferenceLists(t *testing.T) {
	t.Parallel()
	all := rules(t)
	if names := alarmsRaised(t, all, nil); len(names) > 0 {
		t.Errorf("a healthy deployment raises %s", names)
	}
	_, section, _ := strings.Cut(read(t, "../docs/reference/metrics.md"), "\n| failure | order |")
	section, _, _ = strings.Cut(section, "\n\n")
	rows := strings.Split(section, "\n")
	functions := strings.Split(strings.Trim("order |"+rows[0], " |"), " | ")
	got := map[string]map[string]string{}
	for _, row := range rows[2:] {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		got[cells[0]] = map[string]string{}
		for i, cell := range cells[1:] {
			got[cells[0]][functions[i]] = cell
		}
	}
	want := map[string]map[string]string{}
	for failure, byFunction := range lastingFailures() {
		want[failure] = map[string]string{}
		for _, function := range functions {
			want[failure][function] = "–"
			if s, can := byFunction[function]; can {
				names := strings.Join(alarmsRaised(t, all, s), ", ")
				if names == "" {
					names = "**none**"
				}
				want[failure][function] = names
			}
		}
	}
	if diff := cmp.Diff(got, want); diff != "" || len(functions) != 6 {
		t.Errorf("alarms of lasting failures (-metrics.md +alarms.tf):\n%s", diff)
	}
}

// Anybody can send unsigned requests. They must not hide that Stripe's fail.
func TestStrangersCannotSwitchOffTheAlarmsOfTheWebhook(t *testing.T) {
	t.Parallel()
	all := rules(t)
	for _, unsigned := range []float64{0, 60, 3000} {
		names := alarmsRaised(t, all, series{
			"webhook_api Count": 4 + unsigned, "webhook_api 4xx": unsigned, "webhook_api 5xx": 4,
			`app_by_result["unavailable"] Webhooks`: 4,
		})
		if diff := cmp.Diff(names, []string{"`webhook-failing`", "`webhook-unavailable`"}); diff != "" {
			t.Errorf("%v unsigned requests, alarms (-got +want):\n%s", unsigned, diff)
		}
	}
}
