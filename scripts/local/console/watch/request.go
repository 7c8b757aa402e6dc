package watch

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

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

type expression struct {
	Key, Item                 attributes
	UpdateExpression          string
	ConditionExpression       string
	KeyConditionExpression    string
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

// visible are the attributes whose values may be shown: a row has personal ones as well.
const visible = "status attempt intentId stripeMode seq from to amount currency failure lastError refundId " +
	"refundStatus id n"

// redacted returns the expression. A value that may not be shown keeps its name, such as
// :owner for a new one and :owner0 for one that must be there before.
func (e expression) redacted(operation string) string {
	for _, name := range []string{"orderId", "sk", "sku"} {
		if value := e.Key.text(name) + e.Item.text(name); value != "" {
			operation += " " + value
		}
	}
	if text := e.KeyConditionExpression + e.UpdateExpression + e.Item.shown(", "); text != "" {
		operation += "\n  " + e.substitute(text)
	}
	if e.ConditionExpression != "" {
		operation += "\n  IF " + e.substitute(e.ConditionExpression)
	}
	return operation
}

var placeholder = regexp.MustCompile(`:\w+`)

func (e expression) substitute(text string) string {
	return placeholder.ReplaceAllStringFunc(strings.ReplaceAll(text, "#", ""), func(name string) string {
		if slices.Contains(strings.Fields(visible), strings.TrimSuffix(name[1:], "0")) {
			return e.ExpressionAttributeValues.text(name)
		}
		return name
	})
}

func (a attributes) shown(between string) string {
	var parts []string
	for name := range strings.FieldsSeq(visible) {
		if text := a.text(name); text != "" {
			parts = append(parts, name+" = "+text)
		}
	}
	return strings.Join(parts, between)
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
	return strings.TrimSpace(strconv.Itoa(c.Status) + " " + code), item.shown("\n"), c.Status >= 400
}
