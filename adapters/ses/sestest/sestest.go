// Package sestest is a pretend Amazon SES. It serves SendEmail of the API v2 over HTTP
// with the documented limits and failures, keeps a mailbox, and publishes the events that
// SES sends to the default event bus. It checks no signatures.
//
// Source, unless noted otherwise:
// https://docs.aws.amazon.com/ses/latest/APIReference-V2/API_SendEmail.html.
package sestest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"orderonce/adapters/internal/awstest"
)

// Fault is what happens to one request.
type Fault = awstest.Fault

// The kinds of faults.
const (
	Refuse     = awstest.Refuse
	LoseBefore = awstest.LoseBefore
	LoseAfter  = awstest.LoseAfter
	Reset      = awstest.Reset
	Garble     = awstest.Garble
)

// Email is a message in the mailbox.
type Email struct {
	ID                  string
	From, To            string
	Subject, Text, HTML string
	ConfigurationSet    string
	Tags                map[string]string
}

// Options configure Serve. The zero value accepts every message.
type Options struct {
	Now func() time.Time // of the events
	// Verified are the addresses that may send, and ConfigurationSets the sets that exist.
	// Nil accepts every one.
	Verified, ConfigurationSets []string
	// Publish gets the events of a message, as a target of a rule on the default bus
	// receives them: Send, and then Delivery, Bounce or Complaint. It is called after the
	// effect and before the response, and may block. Nil drops them.
	Publish func(event json.RawMessage)
	// Before and After, if set, are called when a request arrives and before its response
	// is sent, so that a test can kill the client there.
	Before, After func(number int)
}

// Server is a pretend SES. It is safe for concurrent use.
type Server struct {
	*awstest.Server

	options Options

	mu   sync.Mutex
	sent []Email
}

// Serve starts a server on a free port of 127.0.0.1. Close ends it.
func Serve(o Options) (s *Server, err error) {
	s = &Server{options: o}
	s.Server, err = awstest.Serve(s.serve)
	return s, err
}

// Sent returns the messages that were sent, in order.
func (s *Server) Sent() []Email {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sent)
}

// request is the body of SendEmail, as far as it is modeled.
type request struct {
	FromEmailAddress     string
	ConfigurationSetName string
	Destination          struct{ ToAddresses []string }
	Content              struct {
		Simple struct {
			Subject content
			Body    struct{ Text, Html content } //nolint:revive // SES's name
		}
	}
	EmailTags []struct{ Name, Value string }
}

type content struct{ Data, Charset string }

func (s *Server) serve(number int, fault Fault, r *http.Request) awstest.Response {
	if s.options.Before != nil {
		s.options.Before(number)
	}
	status, code, body := s.perform(r, fault)
	if s.options.After != nil {
		s.options.After(number)
	}
	header := http.Header{
		"Content-Type": {"application/json"}, "X-Amzn-Requestid": {fmt.Sprintf("request-%d", number)},
	}
	if code != "" {
		header.Set("X-Amzn-ErrorType", code)
	}
	text, _ := json.Marshal(body)
	return awstest.Response{Status: status, Header: header, Body: text}
}

func (s *Server) perform(r *http.Request, fault Fault) (status int, code string, body map[string]string) {
	var in request
	err := json.NewDecoder(r.Body).Decode(&in)
	message := func(text string) map[string]string { return map[string]string{"message": text} }
	switch {
	case fault.Kind == Refuse:
		// SES's own message names the recipient, so a client must not repeat it.
		to := strings.Join(in.Destination.ToAddresses, ",")
		return fault.Status, fault.Code, message("Email address is not verified: " + to)
	case fault.Kind == LoseBefore:
		return 0, "", nil
	case r.Method != http.MethodPost || r.URL.Path != "/v2/email/outbound-emails":
		return http.StatusNotFound, "NotFoundException", message(r.URL.Path)
	case err != nil:
		return http.StatusBadRequest, "BadRequestException", message(err.Error())
	case in.problem() != "":
		return http.StatusBadRequest, "BadRequestException", message(in.problem())
	case s.options.Verified != nil && !slices.Contains(s.options.Verified, in.FromEmailAddress):
		return http.StatusBadRequest, "MessageRejected", message("Email address is not verified.")
	case s.options.ConfigurationSets != nil && in.ConfigurationSetName != "" &&
		!slices.Contains(s.options.ConfigurationSets, in.ConfigurationSetName):
		return http.StatusNotFound, "NotFoundException", message("Configuration set does not exist.")
	}
	e := s.accept(in)
	if s.options.Publish != nil {
		for _, eventType := range outcomes(e.To) {
			s.options.Publish(s.event(e, eventType))
		}
	}
	return http.StatusOK, "", map[string]string{"MessageId": e.ID}
}

// problem returns why a request is invalid, or "". A header with a line break would add
// another one, and a tag has the characters of
// https://docs.aws.amazon.com/ses/latest/APIReference-V2/API_MessageTag.html.
func (in request) problem() string {
	tag := regexp.MustCompile(`^[A-Za-z0-9_-]{1,256}$`)
	for _, t := range in.EmailTags {
		if !tag.MatchString(t.Name) || !tag.MatchString(t.Value) {
			return "Invalid tag: only alphanumeric ASCII characters, '_', '-' are allowed."
		}
	}
	simple := in.Content.Simple
	switch {
	case in.FromEmailAddress == "" || len(in.Destination.ToAddresses) != 1:
		return "Missing from address, or not one destination." // SES accepts more; one is what is modeled
	case strings.ContainsAny(in.FromEmailAddress+in.Destination.ToAddresses[0]+simple.Subject.Data, "\r\n"):
		return "Local address or subject contains control or whitespace"
	case !simple.Subject.readable() || !simple.Body.Text.readable() || !simple.Body.Html.readable():
		return "Not 7-bit ASCII: name the charset."
	case simple.Subject.Data == "" || simple.Body.Text.Data+simple.Body.Html.Data == "":
		return "Missing subject or body."
	}
	return ""
}

// readable reports whether SES sends the text as it is: without a charset it must be
// 7-bit ASCII (API reference, Content).
func (c content) readable() bool {
	ascii := !strings.ContainsFunc(c.Data, func(r rune) bool { return r >= utf8.RuneSelf })
	return ascii || c.Charset == "UTF-8"
}

func (s *Server) accept(in request) Email {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := Email{
		ID:   fmt.Sprintf("%016x-00000000-0000-4000-8000-000000000000-000000", len(s.sent)+1),
		From: in.FromEmailAddress, To: in.Destination.ToAddresses[0],
		Subject: in.Content.Simple.Subject.Data, Text: in.Content.Simple.Body.Text.Data,
		HTML:             in.Content.Simple.Body.Html.Data,
		ConfigurationSet: in.ConfigurationSetName, Tags: map[string]string{},
	}
	for _, t := range in.EmailTags {
		e.Tags[t.Name] = t.Value
	}
	s.sent = append(s.sent, e)
	return e
}

// outcomes returns the types of a message's events: Send and what its recipient's mail
// server does. As in SES's mailbox simulator, the recipient decides: one that starts with
// "bounce" bounces, one that starts with "complaint" is delivered and complains
// (https://docs.aws.amazon.com/ses/latest/dg/send-an-email-from-console.html).
func outcomes(to string) []string {
	switch {
	case strings.HasPrefix(to, "bounce"):
		return []string{"Send", "Bounce"}
	case strings.HasPrefix(to, "complaint"):
		return []string{"Send", "Delivery", "Complaint"}
	}
	return []string{"Send", "Delivery"}
}

// event returns an event in the form of
// https://docs.aws.amazon.com/ses/latest/dg/monitoring-eventbridge.html. Like SES's, it
// has the recipient, whom a consumer must not log.
func (s *Server) event(e Email, eventType string) json.RawMessage {
	at := time.Time{}
	if s.options.Now != nil {
		at = s.options.Now()
	}
	tags := map[string][]string{"ses:configuration-set": {e.ConfigurationSet}, "ses:operation": {"SendEmail"}}
	for name, value := range e.Tags {
		tags[name] = []string{value}
	}
	detail := map[string]any{"eventType": eventType, "mail": map[string]any{
		"timestamp": at.UTC().Format(time.RFC3339), "source": e.From, "messageId": e.ID, "tags": tags,
		"destination": []string{e.To},
	}}
	if eventType == "Bounce" {
		detail["bounce"] = map[string]any{
			"bounceType": "Permanent", "bounceSubType": "General",
			"bouncedRecipients": []map[string]string{{"emailAddress": e.To, "status": "5.1.1"}},
		}
	}
	detailType := map[string]string{
		"Send": "Email Sent", "Bounce": "Email Bounced", "Delivery": "Email Delivered",
		"Complaint": "Email Complaint Received",
	}[eventType]
	text, _ := json.Marshal(map[string]any{ // strings and lists always encode
		"version": "0", "id": e.ID + "-" + eventType, "detail-type": detailType, "source": "aws.ses",
		"account": "123456789012", "time": at.UTC().Format(time.RFC3339), "region": "eu-west-1",
		"resources": []string{}, "detail": detail,
	})
	return text
}
