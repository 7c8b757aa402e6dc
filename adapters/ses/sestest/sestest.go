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
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Kind is what a fault does to one request.
type Kind string

// The kinds of faults.
const (
	Refuse     Kind = "refuse"      // answers with Status and Code, without an effect
	LoseBefore Kind = "lose_before" // closes the connection, without an effect
	LoseAfter  Kind = "lose_after"  // closes the connection after the effect
	Reset      Kind = "reset"       // resets the connection after the effect
	Garble     Kind = "garble"      // answers with half a body after the effect
)

// Fault is what happens to one request.
type Fault struct {
	Kind   Kind
	Status int
	Code   string
}

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
	// Daily is the sending quota; requests above it are throttled. 0 is no limit.
	Daily int
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
	URL string // the endpoint for an SDK

	options Options
	http    *http.Server
	served  sync.WaitGroup

	mu     sync.Mutex
	faults []Fault
	sent   []Email
	calls  int
}

// Serve starts a server on a free port of 127.0.0.1. Close ends it.
func Serve(o Options) (*Server, error) {
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, fmt.Errorf("serve SES double: %w", err)
	}
	s := &Server{URL: "http://" + listener.Addr().String(), options: o}
	s.http = &http.Server{Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: time.Minute}
	s.served.Go(func() { _ = s.http.Serve(listener) }) // always ErrServerClosed
	return s, nil
}

// Close ends the server and its connections.
func (s *Server) Close() error {
	err := s.http.Close()
	s.served.Wait()
	return err
}

// Fail adds faults for the next requests.
func (s *Server) Fail(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, faults...)
}

// Sent returns the messages that were sent, in order.
func (s *Server) Sent() []Email {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sent)
}

// Calls returns the number of requests.
func (s *Server) Calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
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

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	number, fault := s.arrive()
	if s.options.Before != nil {
		s.options.Before(number)
	}
	status, code, body := s.perform(r, fault)
	if s.options.After != nil {
		s.options.After(number)
	}
	if fault.Kind == Reset {
		reset(w)
		return
	}
	if fault.Kind == LoseBefore || fault.Kind == LoseAfter {
		panic(http.ErrAbortHandler) // closes the connection
	}
	if fault.Kind == Garble {
		body = body[:len(body)/2]
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Amzn-RequestId", fmt.Sprintf("request-%d", number))
	if code != "" {
		w.Header().Set("X-Amzn-ErrorType", code)
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) //nolint:gosec // JSON, and a client that is gone needs no answer
}

func (s *Server) arrive() (number int, fault Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if len(s.faults) > 0 {
		fault, s.faults = s.faults[0], s.faults[1:]
	}
	return s.calls, fault
}

// perform has the effect of a request and returns its response.
func (s *Server) perform(r *http.Request, fault Fault) (status int, code string, body []byte) {
	var in request
	err := json.NewDecoder(r.Body).Decode(&in)
	switch {
	case fault.Kind == Refuse:
		// SES's own message names the recipient, so a client must not repeat it.
		to := strings.Join(in.Destination.ToAddresses, ",")
		return refuse(fault.Status, fault.Code, "Email address is not verified: "+to)
	case fault.Kind == LoseBefore:
		return 0, "", nil
	case r.Method != http.MethodPost || r.URL.Path != "/v2/email/outbound-emails":
		return refuse(http.StatusNotFound, "NotFoundException", r.URL.Path)
	case err != nil:
		return refuse(http.StatusBadRequest, "BadRequestException", err.Error())
	case in.problem() != "":
		return refuse(http.StatusBadRequest, "BadRequestException", in.problem())
	}
	e, accepted := s.accept(in)
	if !accepted {
		return refuse(http.StatusTooManyRequests, "TooManyRequestsException", "Daily message quota exceeded")
	}
	for _, event := range s.events(e) {
		if s.options.Publish != nil {
			s.options.Publish(event)
		}
	}
	body, _ = json.Marshal(map[string]string{"MessageId": e.ID})
	return http.StatusOK, "", body
}

func refuse(status int, code, message string) (_ int, _ string, body []byte) {
	body, _ = json.Marshal(map[string]string{"message": message})
	return status, code, body
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

// accept puts a message into the mailbox unless the quota is used up.
func (s *Server) accept(in request) (Email, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.options.Daily > 0 && len(s.sent) >= s.options.Daily {
		return Email{}, false
	}
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
	return e, true
}

// events returns the events of a message: Send and what its recipient's mail server does.
// As in SES's mailbox simulator, the recipient decides: one that starts with "bounce"
// bounces, one that starts with "complaint" is delivered and complains
// (https://docs.aws.amazon.com/ses/latest/dg/send-an-email-from-console.html).
func (s *Server) events(e Email) []json.RawMessage {
	all := []json.RawMessage{s.event(e, "Email Sent", "Send")}
	switch {
	case strings.HasPrefix(e.To, "bounce"):
		return append(all, s.event(e, "Email Bounced", "Bounce"))
	case strings.HasPrefix(e.To, "complaint"):
		delivered := s.event(e, "Email Delivered", "Delivery")
		return append(all, delivered, s.event(e, "Email Complaint Received", "Complaint"))
	}
	return append(all, s.event(e, "Email Delivered", "Delivery"))
}

// event returns an event in the form of
// https://docs.aws.amazon.com/ses/latest/dg/monitoring-eventbridge.html. Like SES's, it
// has the recipient, whom a consumer must not log.
func (s *Server) event(e Email, detailType, eventType string) json.RawMessage {
	at := time.Time{}
	if s.options.Now != nil {
		at = s.options.Now()
	}
	tags := map[string][]string{"ses:configuration-set": {e.ConfigurationSet}, "ses:operation": {"SendEmail"}}
	for name, value := range e.Tags {
		tags[name] = []string{value}
	}
	detail := map[string]any{"eventType": eventType, "mail": map[string]any{
		"timestamp": at.UTC().Format(time.RFC3339), "source": e.From, "messageId": e.ID, "destination": []string{e.To},
		"commonHeaders": map[string]any{"from": []string{e.From}, "to": []string{e.To}, "subject": e.Subject}, "tags": tags,
	}}
	if eventType == "Bounce" {
		detail["bounce"] = map[string]any{
			"bounceType": "Permanent", "bounceSubType": "General",
			"bouncedRecipients": []map[string]string{{"emailAddress": e.To, "status": "5.1.1"}},
		}
	}
	text, _ := json.Marshal(map[string]any{ // strings and lists always encode
		"version": "0", "id": e.ID + "-" + eventType, "detail-type": detailType, "source": "aws.ses",
		"account": "123456789012", "time": at.UTC().Format(time.RFC3339), "region": "eu-west-1",
		"resources": []string{"arn:aws:ses:eu-west-1:123456789012:configuration-set/" + e.ConfigurationSet}, "detail": detail,
	})
	return text
}

// reset closes the connection of a request with a RST, so that the client reads
// "connection reset by peer" and not the end of the stream.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
