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

// value is an attribute value on the wire.
type value struct {
	S, N *string
}

func (v value) text() string {
	switch {
	case v.S != nil:
		return *v.S
	case v.N != nil:
		return *v.N
	}
	return ""
}

// expression is the part of a request that names an item and its change.
type expression struct {
	Key                       map[string]value
	Item                      map[string]value
	UpdateExpression          string
	ConditionExpression       string
	KeyConditionExpression    string
	ExpressionAttributeNames  map[string]string
	ExpressionAttributeValues map[string]value
}

// order returns the id of the order whose item the expression names, or "".
func (e expression) order() string {
	for _, v := range []value{e.Key["orderId"], e.Item["orderId"]} {
		if v.S != nil {
			return *v.S
		}
	}
	if strings.HasPrefix(e.KeyConditionExpression, "orderId = :id") {
		return e.ExpressionAttributeValues[":id"].text()
	}
	return ""
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
	return write{
		order: first.order(), step: first.step(), owner: first.owner(),
		text: strings.Join(lines, "\n"),
	}
}

// step recognizes a write of the store by the attributes that it sets: each new value has
// the name of its attribute, such as :status, and each value that must be there before
// has a zero after it, such as :status0.
func (e expression) step() Step {
	sets := func(attribute string) bool {
		_, is := e.ExpressionAttributeValues[":"+attribute]
		return is
	}
	switch {
	case sets("leaseUntil"), sets("stock"):
		return Claim
	case sets("status"):
		return Finish
	case sets("intentId"):
		return Bind
	case sets("parkedAt"):
		return Park
	case strings.Contains(e.UpdateExpression, "#owner"): // removed
		return Release
	}
	return ""
}

// owner returns the fencing token that the write sets or needs.
func (e expression) owner() string {
	return e.ExpressionAttributeValues[":owner"].text() + e.ExpressionAttributeValues[":owner0"].text()
}

// StepOf returns the order that a request to DynamoDB is about, or "", and the step of
// its protocol, or "".
func StepOf(request []byte) (order string, step Step) {
	w := parseWrite(dynamodbtest.Call{Request: request})
	return w.order, w.step
}

// redacted returns the expression with the values that may be shown.
func (e expression) redacted(operation string) string {
	lines := []string{operation}
	key := e.Key
	if key == nil {
		key = e.Item
	}
	for _, name := range []string{"orderId", "sk", "sku"} {
		if v, ok := key[name]; ok {
			lines[0] += " " + v.text()
		}
	}
	if e.Item != nil {
		lines = append(lines, "  "+itemText(e.Item))
	}
	for _, part := range []struct{ word, text string }{
		{"", e.KeyConditionExpression}, {"", e.UpdateExpression}, {"IF ", e.ConditionExpression},
	} {
		if part.text != "" {
			lines = append(lines, "  "+part.word+e.substitute(part.text))
		}
	}
	return strings.Join(lines, "\n")
}

// substitute replaces the placeholders of an expression. Longer ones come first: one may
// begin with another.
func (e expression) substitute(text string) string {
	byLength := func(a, b string) int { return len(b) - len(a) }
	for _, alias := range slices.SortedFunc(maps.Keys(e.ExpressionAttributeNames), byLength) {
		text = strings.ReplaceAll(text, alias, e.ExpressionAttributeNames[alias])
	}
	for _, name := range slices.SortedFunc(maps.Keys(e.ExpressionAttributeValues), byLength) {
		text = strings.ReplaceAll(text, name, e.show(name))
	}
	return text
}

// show returns the value of a placeholder, or its name in brackets if the value may be
// personal or does not help a reader.
func (e expression) show(name string) string {
	attribute := strings.TrimSuffix(strings.TrimPrefix(name, ":"), "0")
	if text, ok := shown(attribute, e.ExpressionAttributeValues[name]); ok {
		return text
	}
	return "[" + attribute + "]"
}

// shown returns the value of an attribute as a reader gets it, and false if it may be
// personal or does not help. It is the list of what may be shown.
func shown(name string, v value) (text string, ok bool) {
	switch name {
	case "owner":
		return short(v.text()), true
	case "leaseUntil", "createdAt", "updatedAt", "dueAt", "parkedAt", "now", "at":
		return timeOf(v.text()), true
	case "status", "intentId", "stripeMode", "seq", "attempt", "lastError", "n", "amount", "currency", "failure",
		"id", "from", "to", "refundId", "refundStatus":
		return v.text(), true
	}
	return "", false
}

// attributes returns those of an item that have these names and may be shown.
func attributes(item map[string]value, is, between string, names ...string) string {
	var parts []string
	for _, name := range names {
		if v, found := item[name]; found {
			if text, ok := shown(name, v); ok {
				parts = append(parts, name+is+text)
			}
		}
	}
	return strings.Join(parts, between)
}

// itemText returns the attributes of an event item.
func itemText(item map[string]value) string {
	return attributes(item, "=", ", ", "seq", "from", "to", "intentId", "failure", "refundId", "refundStatus")
}

// short shortens a fencing token for people.
func short(owner string) string {
	const shown = 6
	if len(owner) <= shown {
		return owner
	}
	return owner[:shown] + "…"
}

// timeOf formats milliseconds since 1970.
func timeOf(millis string) string {
	n, err := strconv.ParseInt(millis, 10, 64)
	if err != nil {
		return "[time]"
	}
	return time.UnixMilli(n).UTC().Format("15:04:05.000")
}

// answer describes DynamoDB's response: its status and, for an error, its code. row is
// the row that the response has, redacted, or "".
func answer(c dynamodbtest.Call) (text, row string, refused bool) {
	var body struct {
		Type                string `json:"__type"`
		Attributes, Item    map[string]value
		CancellationReasons []struct {
			Code string
			Item map[string]value
		}
	}
	_ = json.Unmarshal(c.Response, &body) // without a body, the status says enough
	code := body.Type[strings.LastIndexByte(body.Type, '#')+1:]
	row = rowText(body.Attributes) + rowText(body.Item)
	for _, reason := range body.CancellationReasons {
		if reason.Code != "None" && reason.Code != "" {
			code, row = code+" ("+reason.Code+")", rowText(reason.Item)
			break
		}
	}
	return strings.TrimSpace(strconv.Itoa(c.Status) + " " + code), row, c.Status >= 400
}

// rowText returns the attributes of a row that may be shown, one a line.
func rowText(row map[string]value) string {
	return attributes(row, " = ", "\n", "status", "attempt", "owner", "leaseUntil", "intentId", "stripeMode",
		"seq", "amount", "currency", "failure", "lastError")
}
