package watch

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"orderonce/adapters/dynamodb/dynamodbtest"
)

// write is what a call to DynamoDB asks for, as far as it is about an order.
type write struct {
	order string
	step  Step   // "" if it is not a step of an order's protocol
	owner string // fencing token of the caller's claim; "" without one
	text  string // redacted, in lines
}

// attributes are those of an item or a condition on the wire. Only strings and numbers
// are read.
type attributes map[string]struct{ S, N string }

func (a attributes) text(name string) string { return a[name].S + a[name].N }

// expression is the part of a request that names an item and its change.
type expression struct {
	Key, Item                 attributes
	UpdateExpression          string
	ConditionExpression       string
	KeyConditionExpression    string
	ExpressionAttributeNames  map[string]string
	ExpressionAttributeValues attributes
}

// parseWrite reads a request to DynamoDB. Its text has only values that are allowed,
// because a row has personal ones.
func parseWrite(c dynamodbtest.Call) write {
	var request struct {
		expression

		TransactItems []struct{ Update, Put expression }
	}
	if json.Unmarshal(c.Request, &request) != nil {
		return write{}
	}
	first, lines := request.expression, []string{request.redacted(c.Operation)}
	if len(request.TransactItems) > 0 {
		first, lines = request.TransactItems[0].Update, []string{c.Operation}
	}
	for _, item := range request.TransactItems {
		if item.Update.Key != nil {
			lines = append(lines, item.Update.redacted("Update"))
		} else if item.Put.Item != nil {
			lines = append(lines, item.Put.redacted("Put"))
		}
	}
	w := write{
		order: first.Key.text("orderId") + first.Item.text("orderId"), step: first.step(),
		text:  strings.Join(lines, "\n"),
		owner: first.ExpressionAttributeValues.text(":owner") + first.ExpressionAttributeValues.text(":owner0"),
	}
	if strings.HasPrefix(first.KeyConditionExpression, "orderId = :id") {
		w.order = first.ExpressionAttributeValues.text(":id")
	}
	return w
}

// step recognizes a write of the store by the attributes that it sets: each new value has
// the name of its attribute, such as :status, and each value that must be there before
// has a zero after it, such as :status0.
func (e expression) step() Step {
	for _, s := range []struct {
		attribute string
		step      Step
	}{
		{"leaseUntil", Claim}, {"stock", Claim}, {"status", Finish}, {"intentId", Bind}, {"parkedAt", Park},
	} {
		if _, is := e.ExpressionAttributeValues[":"+s.attribute]; is {
			return s.step
		}
	}
	if strings.Contains(e.UpdateExpression, "#owner") { // removed
		return Release
	}
	return ""
}

// StepOf returns the order that a request to DynamoDB is about, or "", and the step of
// its protocol, or "".
func StepOf(request []byte) (order string, step Step) {
	w := parseWrite(dynamodbtest.Call{Request: request})
	return w.order, w.step
}

// redacted returns the expression with the values that may be shown.
func (e expression) redacted(operation string) string {
	head := []string{operation}
	for _, name := range []string{"orderId", "sk", "sku"} {
		if value := e.Key.text(name) + e.Item.text(name); value != "" {
			head = append(head, value)
		}
	}
	lines := []string{strings.Join(head, " ")}
	if e.Item != nil {
		const of = "seq from to intentId failure refundId refundStatus" // an event
		lines = append(lines, "  "+e.Item.shown(of, "=", ", "))
	}
	for _, text := range []string{e.KeyConditionExpression, e.UpdateExpression} {
		if text != "" {
			lines = append(lines, "  "+e.substitute(text))
		}
	}
	if e.ConditionExpression != "" {
		lines = append(lines, "  IF "+e.substitute(e.ConditionExpression))
	}
	return strings.Join(lines, "\n")
}

// substitute replaces the placeholders of an expression: a value that may be personal or
// does not help a reader by its name in brackets. Longer ones come first: one may begin
// with another.
func (e expression) substitute(text string) string {
	byLength := func(a, b string) int { return len(b) - len(a) }
	for _, alias := range slices.SortedFunc(maps.Keys(e.ExpressionAttributeNames), byLength) {
		text = strings.ReplaceAll(text, alias, e.ExpressionAttributeNames[alias])
	}
	for _, name := range slices.SortedFunc(maps.Keys(e.ExpressionAttributeValues), byLength) {
		attribute := strings.TrimSuffix(strings.TrimPrefix(name, ":"), "0")
		value, ok := shown(attribute, e.ExpressionAttributeValues.text(name))
		if !ok {
			value = "[" + attribute + "]"
		}
		text = strings.ReplaceAll(text, name, value)
	}
	return text
}

// shown returns the value of an attribute as a reader gets it, and false if it may be
// personal or does not help. It is the list of what may be shown.
func shown(name, value string) (text string, ok bool) {
	switch name {
	case "owner":
		return short(value), true
	case "leaseUntil", "createdAt", "updatedAt", "dueAt", "parkedAt", "now", "at":
		millis, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return "", false
		}
		return time.UnixMilli(millis).UTC().Format("15:04:05.000"), true
	case "status", "intentId", "stripeMode", "seq", "attempt", "lastError", "n", "amount", "currency", "failure",
		"id", "from", "to", "refundId", "refundStatus":
		return value, true
	}
	return "", false
}

// shown returns those of the named attributes that may be shown.
func (a attributes) shown(names, is, between string) string {
	var parts []string
	for name := range strings.FieldsSeq(names) {
		if _, found := a[name]; found {
			if text, ok := shown(name, a.text(name)); ok {
				parts = append(parts, name+is+text)
			}
		}
	}
	return strings.Join(parts, between)
}

// short shortens a fencing token for people.
func short(owner string) string {
	const shown = 6
	if len(owner) <= shown {
		return owner
	}
	return owner[:shown] + "…"
}

// answer describes DynamoDB's response: its status and, for an error, its code. row has
// the attributes of the response's row that may be shown, one a line.
func answer(c dynamodbtest.Call) (text, row string, refused bool) {
	var body struct {
		Type                string `json:"__type"`
		Attributes, Item    attributes
		CancellationReasons []struct {
			Code string
			Item attributes
		}
	}
	_ = json.Unmarshal(c.Response, &body) // without a body, the status says enough
	code, item := body.Type[strings.LastIndexByte(body.Type, '#')+1:], body.Item
	if item == nil {
		item = body.Attributes
	}
	for _, reason := range body.CancellationReasons {
		if reason.Code != "None" && reason.Code != "" {
			code, item = code+" ("+reason.Code+")", reason.Item
			break
		}
	}
	const of = "status attempt owner leaseUntil intentId stripeMode seq amount currency failure lastError"
	return strings.TrimSpace(strconv.Itoa(c.Status) + " " + code), item.shown(of, " = ", "\n"), c.Status >= 400
}
