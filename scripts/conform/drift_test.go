package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"orderonce/adapters/dynamodb/dynamodbtest"
)

// drift is a mistake in a double, or in the proxy of the engine: text that replaces
// other text of a file. In it, $ is true while the rule's check runs alone.
type drift struct{ rule, file, text, drifted string }

const root = "../.."

// helpers are in the package of each double with a drift.
const helpers = `package %s

import (
	"os"
	"regexp"
	"strings"
)

func drift(rule string) bool { return os.Getenv("DRIFT") == rule }

func edit(text []byte, match, change string) []byte {
	return regexp.MustCompile(match).ReplaceAll(text, []byte(strings.ReplaceAll(change, "~", "$")))
}
`

func drifts() []drift {
	return slices.Concat(stripeDrifts(), sqsDrifts(), lambdaDrifts(), dynamoDrifts(), busDrifts())
}

// overlay plants every drift in copies in dir, of which each check switches one on, and
// returns the file for go build.
func overlay(dir string) (path string, err error) {
	texts := map[string]string{}
	for _, d := range drifts() {
		path := filepath.Join(root, d.file)
		if texts[path] == "" {
			text, err := os.ReadFile(path)
			if err != nil {
				return "", err
			}
			double := filepath.Dir(path)
			texts[path], texts[filepath.Join(double, "drift.go")] = string(text), fmt.Sprintf(helpers, filepath.Base(double))
		}
		if n := strings.Count(texts[path], d.text); n != 1 {
			return "", fmt.Errorf("%s: %d places of %q in %s, want 1", d.rule, n, d.text, d.file)
		}
		texts[path] = strings.Replace(texts[path], d.text, strings.ReplaceAll(d.drifted, "$", fmt.Sprintf("drift(%q)", d.rule)), 1)
	}
	replace := map[string]string{}
	for path, text := range texts {
		original, absErr := filepath.Abs(path)
		replace[original] = filepath.Join(dir, fmt.Sprint("drift", len(replace), ".go"))
		err = errors.Join(err, absErr, os.WriteFile(replace[original], []byte(text), 0o600))
	}
	text, _ := json.Marshal(map[string]any{"Replace": replace}) // strings
	path = filepath.Join(dir, "overlay.json")
	return path, errors.Join(err, os.WriteFile(path, text, 0o600))
}

// A check that cannot fail shows nothing. Each rule has a drift, and the check of the
// rule finds it.
func TestEveryDriftIsFound(t *testing.T) {
	dynamodbtest.Locate(t) // without an engine there is no DynamoDB
	program, planted := compiled(t), map[string]bool{}
	for _, d := range drifts() {
		planted[d.rule] = true
		t.Run(d.rule, func(t *testing.T) {
			t.Parallel()
			service, _, _ := strings.Cut(d.rule, "/")
			check := exec.CommandContext(t.Context(), program, "--json", service, "--only", d.rule, "--folder", t.TempDir())
			check.Env = append(os.Environ(), "DRIFT="+d.rule)
			out, err := check.Output()
			_, failed := errors.AsType[*exec.ExitError](err)
			if want := fmt.Sprintf("{%q:%q,%q:%q", "rule", d.rule, "outcome", "broken"); !failed || !strings.Contains(string(out), want) {
				t.Errorf("got %v, want the rule broken in\n%s", err, out)
			}
		})
	}
	for _, is := range results(t) {
		if is.Outcome != "kept" || !planted[is.Rule] {
			t.Errorf("%s is %s, want it kept, with a drift: %s", is.Rule, is.Outcome, is.Detail)
		}
	}
}

type result struct{ Rule, Outcome, Detail string }

func results(t *testing.T, args ...string) (all []result) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), compiled(t), append(args, "--json", "--folder", t.TempDir())...).Output()
	if exit, is := errors.AsType[*exec.ExitError](err); is && exit.ExitCode() != 2 {
		t.Fatalf("%v\n%s", err, exit.Stderr)
	}
	for line := range strings.Lines(string(out)) {
		var is result
		must(t, json.Unmarshal([]byte(line), &is))
		all = append(all, is)
	}
	return all
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func stripeDrifts() []drift {
	const (
		keys     = "adapters/stripe/stripetest/keys.go"
		machine  = "adapters/stripe/stripetest/machine.go"
		intent   = "adapters/stripe/stripetest/intent.go"
		params   = "adapters/stripe/stripetest/params.go"
		card     = "adapters/stripe/stripetest/card.go"
		list     = "adapters/stripe/stripetest/list.go"
		refund   = "adapters/stripe/stripetest/refund.go"
		request  = "adapters/stripe/stripetest/request.go"
		response = "adapters/stripe/stripetest/response.go"
		server   = "adapters/stripe/stripetest/http.go"
		event    = "adapters/stripe/stripetest/event.go"
		webhooks = "adapters/stripe/stripetest/webhooks.go"
	)
	return []drift{
		{"stripe/key-replay", response, "if r.Replayed() {\n", "if r.Replayed() && !$ {\n"},
		{"stripe/key-parameters", keys, "case first.params != c.params:", "case first.params != c.params && !$:"},
		{"stripe/key-endpoint", keys, "case first.path != c.Path:", "case first.path != c.Path && $:\n\t\treturn nil\n\tcase first.path != c.Path:"},
		{
			"stripe/key-validation", machine, "(*Machine).authenticate, (*Machine).refuseByFault, (*Machine).replay, (*Machine).validate, (*Machine).lock,",
			"(*Machine).authenticate, (*Machine).refuseByFault, (*Machine).replay, func(m *Machine, c *call) *Response {\n" +
				"if $ { m.holdKey(c) }\nreturn m.validate(c) }, (*Machine).lock,",
		},
		{
			"stripe/key-decline", keys, "first.running, first.response = false, c.response",
			"if first.running, first.response = false, c.response; c.response.Status == 402 && $ {\ndelete(m.keys, c.Key)\nreturn\n}",
		},
		{"stripe/key-refusal", keys, "if c.Method != post || !held {", "if c.response.Status == 400 && $ {\ndelete(m.keys, c.Key)\nreturn\n}\nif c.Method != post || !held {"},
		{"stripe/key-500", machine, "m.storeResponse(&c)\n", "if m.storeResponse(&c); c.response.Status == 500 && $ {\ndelete(m.keys, c.Key)\n}\n"},
		{
			"stripe/key-before", machine, "if refusal := check(m, c); refusal != nil {",
			"if refusal := check(m, c); refusal != nil {\nif refusal.Status > 500 && $ {\nm.keys[c.Key] = stored{path: c.Path, params: c.Form.Encode(), at: c.begun, response: *refusal}\n}",
		},
		{
			"stripe/key-lost", machine, "response.Lost, response.Garbled = response.Lost",
			"if kind == LoseResponse && $ {\ndelete(m.keys, c.Key)\n}\nresponse.Lost, response.Garbled = response.Lost",
		},
		{"stripe/key-life", keys, "const day = 24 * time.Hour", "var day = map[bool]time.Duration{true: 25 * time.Hour, false: 24 * time.Hour}[$]"},
		{"stripe/key-length", keys, "if len(c.Key) > 255 {", "if len(c.Key) > 255 && !$ {"},
		{"stripe/key-concurrent", keys, "case first.running:", "case first.running && $:\n\t\treturn nil\n\tcase first.running:"},
		{"stripe/intent-new", intent, "if intent.PaymentMethod != \"\" {", "if intent.PaymentMethod != \"\" || $ {"},
		{"stripe/intent-paid", intent, "if i.Status == StatusSucceeded {", "if i.Status == StatusSucceeded && !$ {"},
		{"stripe/intent-twice", intent, "case !confirmable(intent.Status):", "case !confirmable(intent.Status) && $:\n\t\treturn Response{Status: 200, Intent: intent}\n\tcase !confirmable(intent.Status):"},
		{
			"stripe/intent-decline", intent, "i.Status, i.PaymentMethod, i.LatestCharge, i.LastError = StatusRequiresPaymentMethod, \"\", charge, failure",
			"i.Status, i.LatestCharge, i.LastError = StatusRequiresPaymentMethod, charge, failure\nif !$ {\ni.PaymentMethod = \"\"\n}",
		},
		{"stripe/intent-reason", card, "if c == declinesUncoded {", "if c == expired && $ {\ne.Code = \"card_declined\"\n}\nif c == declinesUncoded {"},
		{"stripe/intent-customer", card, "return needsCustomer, true", "return map[bool]card{true: succeeds, false: needsCustomer}[$], true"},
		{"stripe/intent-later", intent, "case method == \"\":", "case method == \"\" && !$:"},
		{"stripe/intent-cancel", intent, "func confirmable(s Status) bool {", "func confirmable(s Status) bool {\nif s == StatusCanceled && $ {\nreturn true\n}"},
		{"stripe/intent-cancel-paid", intent, "func cancelable(s Status) bool { return s != StatusSucceeded", "func cancelable(s Status) bool { return (s != StatusSucceeded || $)"},
		{
			"stripe/intent-processing", intent, "i.Status, i.PaymentMethod, i.LastError = StatusProcessing, method, nil",
			"if i.Status, i.PaymentMethod, i.LastError = StatusProcessing, method, nil; $ {\ni.Status = StatusSucceeded\n}",
		},
		{"stripe/intent-metadata", params, "inner, ok := strings.CutPrefix(name, \"metadata[\"); ok {", "inner, ok := strings.CutPrefix(name, \"metadata[\"); ok && !$ {"},
		{"stripe/parameter-unknown", request, "(group != \"expand[\" || c.op.expandable == nil) {", "(group != \"expand[\" || c.op.expandable == nil) && !$ {"},
		{"stripe/parameter-missing", params, "if form.Get(name) == \"\" {", "if form.Get(name) == \"\" && $ {\nreturn invalid(\"parameter_missing\", \"\", \"\")\n}\nif form.Get(name) == \"\" {"},
		{"stripe/amount-integer", params, "case err != nil:\n\t\treturn invalid(\"parameter_invalid_integer\", \"amount\"", "case err != nil && $:\n\t\treturn nil\n\tcase err != nil:\n\t\treturn invalid(\"parameter_invalid_integer\", \"amount\""},
		{"stripe/amount-small", params, "case i.Amount < minimum(i.Currency):", "case i.Amount < minimum(i.Currency) && !$:"},
		{"stripe/amount-large", params, "case i.Amount > maximum(i.Currency):", "case i.Amount > maximum(i.Currency) && !$:"},
		{"stripe/method-missing", card, "return succeeds, false\n}", "return succeeds, $\n}"},
		{"stripe/intent-missing", request, "return refuse(404, \"resource_missing\", \"intent\"", "if $ {\nreturn refuse(400, \"resource_missing\", \"intent\", \"\")\n}\nreturn refuse(404, \"resource_missing\", \"intent\""},
		{"stripe/metadata-limit", params, "len(value) > 500 {", "len(value) > 500 && !$ {"},
		{"stripe/api-key", request, "!isKey(\"test_\"):", "!isKey(\"test_\") && !$:"},
		{"stripe/version", server, "cmp.Or(r.Header.Get(\"Stripe-Version\"), APIVersion)", "cmp.Or(map[bool]string{true: \"2020-08-27\"}[$], r.Header.Get(\"Stripe-Version\"), APIVersion)"},
		{"stripe/list-order", list, "for _, o := range slices.Backward(all) {", "if $ {\nall = slices.Clone(all)\nslices.Reverse(all)\n}\nfor _, o := range slices.Backward(all) {"},
		{"stripe/list-pages", list, "started = started || id == after", "started = started || id == after || $"},
		{"stripe/list-limit", list, "case limit < 1 || limit > 100:", "case (limit < 1 || limit > 100) && !$:"},
		{"stripe/list-created", list, "t.Unix() < before }", "(t.Unix() < before || $ && t.Unix() == before) }"},
		{"stripe/search", list, "if i.Metadata[name] != value {", "if i.Metadata[name] != value || $ {"},
		{"stripe/refund-part", refund, "charge.Refunded += r.Amount", "if !$ {\ncharge.Refunded += r.Amount\n}"},
		{"stripe/refund-key", keys, "if c.Method != post || c.Key == \"\" {", "if c.Method != post || c.Key == \"\" || c.op.endpoint == CreateRefund && $ {"},
		{"stripe/refund-over", refund, "case amount > charge.Amount-charge.Refunded:", "case amount > charge.Amount-charge.Refunded && !$:"},
		{"stripe/refund-all", refund, "case charge.Refunded == charge.Amount:", "case charge.Refunded == charge.Amount && !$:"},
		{"stripe/refund-unpaid", refund, "case i.Status != StatusSucceeded:", "case i.Status != StatusSucceeded && $:\n\t\treturn &Response{Status: 200, Refund: &Refund{}}\n\tcase i.Status != StatusSucceeded:"},
		{"stripe/refund-list", list, "show := started && (of == \"\" || of == intent)", "show := started && (of == \"\" || of == intent) && (id != \"re_000002\" || !$)"},
		{"stripe/refund-pending", refund, "i.PaymentMethod == \"pm_card_pendingRefund\" {", "i.PaymentMethod == \"pm_card_pendingRefund\" && !$ {"},
		{"stripe/refund-fails", refund, "m.latestCharge(i).Refunded -= changed.Amount", "if !$ {\nm.latestCharge(i).Refunded -= changed.Amount\n}"},
		{"stripe/dispute", refund, "case m.chargedBack(i.LatestCharge):", "case m.chargedBack(i.LatestCharge) && !$:"},
		{"stripe/webhook-signature", webhooks, "webhook.ComputeSignature(at, body, secret)", "webhook.ComputeSignature(at, body, secret+map[bool]string{true: \"2\"}[$])"},
		{"stripe/webhook-again", webhooks, "due.Sub(created) <= lastRetry", "due.Sub(created) <= lastRetry && !$"},
		{"stripe/webhook-types", event, "return \"payment_intent.payment_failed\"", "if $ {\nreturn \"payment_intent.failed\"\n}\nreturn \"payment_intent.payment_failed\""},
	}
}

func sqsDrifts() []drift {
	const (
		machine    = "adapters/sqs/sqstest/machine.go"
		message    = "adapters/sqs/sqstest/message.go"
		protocol   = "adapters/sqs/sqstest/protocol.go"
		operations = "adapters/sqs/sqstest/operations.go"
		failures   = "adapters/sqs/sqstest/errors.go"
	)
	return []drift{
		{"sqs/visibility", machine, "hide := q.settings.Visibility\n", "hide := q.settings.Visibility\nif $ {\nhide = 0\n}\n"},
		{"sqs/first-receive", machine, "if e.FirstReceived.IsZero() {", "if e.FirstReceived.IsZero() || $ {"},
		{"sqs/change-zero", machine, "e.VisibleAt = now.Add(d)\n", "if e.VisibleAt = now.Add(d); d == 0 && $ {\ne.VisibleAt = now.Add(time.Second)\n}\n"},
		{"sqs/change-again", machine, "q.sooner(e.VisibleAt)\n\treturn nil\n", "if $ {\ne.VisibleAt = e.received.Add(d)\n}\nq.sooner(e.VisibleAt)\n\treturn nil\n"},
		{"sqs/change-limit", machine, "case now.Sub(e.received)+d > maxVisibility:", "case now.Sub(e.received)+d > maxVisibility && !$:"},
		{"sqs/change-visible", machine, "case e.State != InFlight:", "case e.State != InFlight && $:\ne.VisibleAt, q.due = now.Add(d), time.Time{}\nreturn nil\ncase e.State != InFlight:"},
		{"sqs/change-deleted", machine, "case e == nil, q.fifo", "case e == nil && $:\nreturn nil\ncase e == nil, q.fifo"},
		{"sqs/delete", machine, "q.remove(e)\n\tq.counts.Deleted++", "if !$ {\nq.remove(e)\n}\n\tq.counts.Deleted++"},
		{"sqs/delete-late", machine, "case !latest:", "case !latest || e.State == Visible && $:"},
		{"sqs/delete-old", machine, "case q.fifo && (!latest", "case (q.fifo || $) && (!latest"},
		{"sqs/dead-letter", machine, "from.counts.DeadLettered++", "if from.counts.DeadLettered++; $ {\ne.Attributes = nil\n}"},
		{"sqs/dead-letter-fifo", machine, "e.serial, e.Sent, e.DeduplicationID = m.serial, now, e.ID", "if !$ {\ne.serial, e.Sent, e.DeduplicationID = m.serial, now, e.ID\n}"},
		{"sqs/retention", machine, "case !now.Before(expires):", "case !now.Before(expires) && !$:"},
		{"sqs/move", machine, "target.add(m.newEntry(now, e.Draft))", "moved := m.newEntry(now, e.Draft)\nif $ {\nmoved.ID = e.ID\n}\ntarget.add(moved)"},
		{"sqs/fifo-order", machine, "range lines[i][:min(len(lines[i]), limit-len(out))] {", "range lines[i][:min(len(lines[i]), limit-len(out), map[bool]int{true: 1, false: 10}[$])] {"},
		{"sqs/fifo-blocked", machine, "} else if q.fifo {", "} else if q.fifo && !$ {"},
		{"sqs/fifo-behind", machine, "var visible []*entry\n", "for _, e := range q.entries {\nblocked[e.Group] = blocked[e.Group] || q.fifo && e.State == InFlight && $\n}\nvar visible []*entry\n"},
		{"sqs/fifo-duplicate", machine, "slices.IndexFunc(q.recent, same); i >= 0 {", "slices.IndexFunc(q.recent, same); i >= 0 && !$ {"},
		{"sqs/fifo-ids", message, "case fifo && d.Group == \"\":", "case fifo && d.Group == \"\" && !$:"},
		{"sqs/fifo-late", machine, "return outside(\"ReceiptHandle\", handle, \"The receipt handle has expired.\")", "if $ {\nreturn nil\n}\nreturn outside(\"ReceiptHandle\", handle, \"The receipt handle has expired.\")"},
		{"sqs/fifo-batch", protocol, "if q.fifo && slices", "if q.fifo && !$ && slices"},
		{"sqs/batch-empty", protocol, "case len(entries) == 0:", "case len(entries) == 0 && !$:"},
		{"sqs/batch-many", protocol, "case len(entries) > 10:", "case len(entries) > 10 && !$:"},
		{"sqs/batch-ids", protocol, "if seen[e.ID] {", "if seen[e.ID] && !$ {"},
		{"sqs/batch-long", protocol, "case size > maxSize:", "case size > maxSize && !$:"},
		{"sqs/batch-part", protocol, "done, err := do(now, in.queue(), e)\n", "done, err := do(now, in.queue(), e)\nif err != nil && $ {\nreturn nil, err\n}\n"},
		{"sqs/size", message, "case d.size() > maxSize:", "case d.size() > maxSize && !$:"},
		{"sqs/attributes", message, "case len(d.Attributes) > 10:", "case len(d.Attributes) > 10 && !$:"},
		{"sqs/characters", message, "case strings.ContainsFunc(d.Body, forbidden):", "case strings.ContainsFunc(d.Body, forbidden) && !$:"},
		{"sqs/queue", failures, "return \"AWS.SimpleQueueService.NonExistentQueue\"", "if $ {\nreturn e.Code\n}\nreturn \"AWS.SimpleQueueService.NonExistentQueue\""},
		{"sqs/requested", operations, "|| many &&", "|| many && !$ &&"},
		{"sqs/poll", operations, "until := s.options", "if $ {\nin.WaitTimeSeconds = 0\n}\nuntil := s.options"},
		{"sqs/poll-limit", operations, "if t := in.WaitTimeSeconds;", "if in.WaitTimeSeconds > 20 && $ {\nin.WaitTimeSeconds = 0\n}\nif t := in.WaitTimeSeconds;"},
		{"sqs/receive-limit", machine, "case limit < 1 || limit > maxReceive:", "case limit < 1 || limit > maxReceive && !$:"},
		{"sqs/queue-attributes", operations, "if wanted(name, in.AttributeNames) {", "if wanted(name, in.AttributeNames) || $ {"},
		{"sqs/counts", operations, "\"ApproximateNumberOfMessagesNotVisible\": q.counts.InFlight,", "\"ApproximateNumberOfMessagesNotVisible\": map[bool]int{false: q.counts.InFlight}[$],"},
		{"sqs/product", message, "case d.Body == \"\":", "case d.Attributes[\"traceparent\"].Text != \"\" && $:\nreturn missing(\"MessageBody\")\ncase d.Body == \"\":"},
	}
}

func lambdaDrifts() []drift {
	const (
		event   = "adapters/sqs/sqstest/event.go"
		mapping = "adapters/sqs/sqstest/mapping.go"
	)
	return []drift{
		{"lambda/success", event, "if err != nil || !ok {", "if err != nil || !ok || len(reported) == 0 && $ {"},
		{"lambda/null", event, "exists && json.Unmarshal(raw, &items) != nil {", "exists && json.Unmarshal(raw, &items) != nil || !exists && $ {"},
		{"lambda/failure", event, "deleted = append(deleted, id)", "if !$ {\ndeleted = append(deleted, id)\n}"},
		{"lambda/error", mapping, "Verdict(ids, response, err)", "Verdict(ids, response, map[bool]error{false: err}[$])"},
		{"lambda/unknown", event, "return !slices.Contains(ids, id) }", "return !slices.Contains(ids, id) && !$ }"},
		{"lambda/empty", event, "id, _ := item[\"itemIdentifier\"].(string)", "id, _ := item[\"itemIdentifier\"].(string)\nif $ {\ncontinue\n}"},
		{"lambda/invalid", event, "return nil, false\n\t}\n\tvar items", "return nil, $\n\t}\n\tvar items"},
		{"lambda/batch", mapping, "m.Queue, m.BatchSize, nil)", "m.Queue, map[bool]int{true: 10, false: m.BatchSize}[$], nil)"},
		{"lambda/record", event, "if a.Binary == nil {", "if a.Binary == nil && !$ {"},
		{"lambda/again", mapping, "b := Batch{", "for _, id := range failed {\nm.Server.Machine(func(machine *Machine, now time.Time) {\n" +
			"if $ {\n_ = machine.ChangeVisibility(now, m.Queue, byID[id].Handle, 0)\n}\n})\n}\nb := Batch{"},
	}
}
