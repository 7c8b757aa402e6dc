package ses

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"orderonce/domain/order"
	"orderonce/domain/receipt"
)

// Source is the source of SES's events on the default event bus.
const Source = "aws.ses"

// Event is an event of SES's about a receipt.
type Event struct {
	OrderID order.ID
	Key     receipt.Key
	Report  receipt.Report
}

// event is an event as EventBridge delivers it. detail is the same object as in SES's
// other event destinations. Addresses, headers and diagnostic texts are not read.
//
// Sources: https://docs.aws.amazon.com/ses/latest/dg/monitoring-eventbridge.html,
// https://docs.aws.amazon.com/eventbridge/latest/ref/events-ref-ses.html and
// https://docs.aws.amazon.com/ses/latest/dg/event-publishing-retrieving-sns-contents.html.
type event struct {
	Source string `json:"source"`
	Detail struct {
		Type string `json:"eventType"`
		Mail struct {
			MessageID string              `json:"messageId"`
			Tags      map[string][]string `json:"tags"`
		} `json:"mail"`
		Bounce struct {
			Type    string `json:"bounceType"`
			Subtype string `json:"bounceSubType"`
		} `json:"bounce"`
	} `json:"detail"`
}

var (
	errNotEvent = errors.New("not an event of SES: want an object with source, detail.eventType and detail.mail")
	errBadTag   = errors.New("invalid tag " + tagOrder + ", " + tagReceipt + " or " + tagAttempt)
)

// DecodeEvent decodes an event that EventBridge put into a queue. wanted is false for an
// e-mail that is not a receipt of the scope, and for a kind of event that changes
// nothing, such as Open. The error contains no value of the body.
func DecodeEvent(body string, scope order.Scope) (e Event, wanted bool, err error) {
	var in event // encoding/json, because SES may add fields
	if err := json.Unmarshal([]byte(body), &in); err != nil || in.Source != Source || in.Detail.Type == "" {
		return Event{}, false, errNotEvent // an error of json may repeat a value
	}
	report, known := in.report()
	if tag := in.tag(tagScope); !known || tag != string(scope) {
		return Event{}, false, nil
	}
	id, idErr := decodeTag(in.tag(tagOrder))
	key, keyErr := decodeTag(in.tag(tagReceipt))
	attempt, attemptErr := strconv.Atoi(in.tag(tagAttempt))
	k, err := receipt.ParseKey(key)
	if errors.Join(idErr, keyErr, attemptErr, err) != nil || !order.ValidID(id) {
		return Event{}, false, fmt.Errorf("event %s of SES: %w", in.Detail.Type, errBadTag)
	}
	if report.Message == "" {
		return Event{}, false, errNotEvent
	}
	report.Attempt = attempt
	return Event{OrderID: order.ID(id), Key: k, Report: report}, true, nil
}

func (e event) tag(name string) string {
	if values := e.Detail.Mail.Tags[name]; len(values) == 1 {
		return values[0]
	}
	return ""
}

// report returns what an event reports. A complaint is about an e-mail that arrived.
// Reject and Rendering Failure mean that SES accepted a message and did not send it; a
// delay is not an outcome. SES chooses the words of a bounce from a list.
func (e event) report() (r receipt.Report, known bool) {
	r.Message = receipt.MessageID(e.Detail.Mail.MessageID)
	switch e.Detail.Type {
	case "Send":
		r.Status = receipt.Sent
	case "Delivery", "Complaint":
		r.Status = receipt.Delivered
	case "Bounce":
		r.Status, r.Code = receipt.Bounced, e.Detail.Bounce.Type+"/"+e.Detail.Bounce.Subtype
	case "Reject", "Rendering Failure":
		r.Status, r.Code = receipt.Failed, e.Detail.Type
	}
	return r, r.Status != ""
}
