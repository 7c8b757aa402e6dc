package sqs

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"orderonce/adapters/internal/strictjson"
	"orderonce/domain/order"
)

// MaxBody is the largest message body that is read, in bytes.
const MaxBody = strictjson.MaxBody

// Unwrap replaces a body by the message in its wrappers: an SNS notification, an
// EventBridge event, or an event in a notification. It leaves any other body unchanged,
// also one with a field of a message or of both wrappers, because unwrapping would drop
// some of them silently.
func Unwrap(body *[]byte) error {
	wrapper, err := wrapperOf(*body)
	if string(wrapper["Type"]) == `"Notification"` && strings.HasPrefix(string(wrapper["Message"]), `"`) {
		*body = []byte(strictjson.Text(wrapper["Message"]))
		wrapper, err = wrapperOf(*body)
	}
	if wrapper["detail-type"] != nil && wrapper["detail"] != nil {
		*body = wrapper["detail"]
	}
	return err
}

// wrapperOf returns the fields of a notification or of an event, or none. A body without
// the marker of either is neither, and is not read.
func wrapperOf(raw []byte) (wrapper map[string][]byte, err error) {
	if !bytes.Contains(raw, []byte(`"Notification"`)) && !bytes.Contains(raw, []byte(`"detail-type"`)) {
		return wrapper, nil
	}
	wrapper, err = strictjson.Members(raw)
	ofMessage := slices.ContainsFunc([]string{
		"type", "orderId", "customerId", "currency", "lines", "payment", "refundId", "amount", "reason",
	}, func(field string) bool { return wrapper[field] != nil })
	if ofBoth := wrapper["Message"] != nil && wrapper["detail"] != nil; err != nil || ofMessage || ofBoth {
		return nil, err
	}
	for name := range wrapper {
		for _, want := range []string{"Type", "Message", "detail-type", "detail"} {
			if name != want && strings.EqualFold(name, want) {
				return nil, &strictjson.Error{Problem: fmt.Sprintf("unknown field %s: want %q", order.Quote(name), want)}
			}
		}
	}
	return wrapper, nil
}
