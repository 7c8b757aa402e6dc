package sqstest

import (
	"encoding/xml"
	"net/http"
	"net/url"
)

// isQuery reports whether a request uses the older AWS Query protocol: no X-Amz-Target,
// and the operation in a form or in the URL, as in Action=SendMessage&Version=2012-11-05.
// Older AWS CLIs and SDKs send such requests, for example those of Debian 12: AWS CLI
// 2.9.19 and boto3 1.26.
func isQuery(r *http.Request, body []byte) bool {
	if r.Header.Get("X-Amz-Target") != "" {
		return false
	}
	form, err := url.ParseQuery(string(body))
	return err == nil && form.Has("Action") || r.URL.Query().Has("Action")
}

// queryError is an error in the Query protocol (SQS developer guide, "Interpreting Amazon
// SQS XML API responses").
type queryError struct {
	XMLName   xml.Name `xml:"http://queue.amazonaws.com/doc/2012-11-05/ ErrorResponse"`
	Type      string   `xml:"Error>Type"`
	Code      string   `xml:"Error>Code"`
	Message   string   `xml:"Error>Message"`
	RequestID string   `xml:"RequestId"`
}

// rejectQuery responds in the Query protocol, because its clients cannot parse an error
// in JSON: the AWS CLI would print "invalid XML received" and not what to do.
func rejectQuery(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/xml")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = w.Write([]byte(xml.Header))
	_ = xml.NewEncoder(w).Encode(queryError{ // fails if the client has closed the connection
		Type: "Sender", Code: CodeUnsupportedProtocol,
		Message:   "this queue speaks AWS JSON 1.0: use AWS CLI 2.13 or later, or orders post",
		RequestID: "00000000-0000-0000-0000-000000000000",
	})
}
