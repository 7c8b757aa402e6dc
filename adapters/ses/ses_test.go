package ses_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/ses"
	"orderonce/adapters/ses/sestest"
	"orderonce/domain/order"
	"orderonce/domain/receipt"
)

const scope = order.Scope("test")

func serve(t *testing.T, o sestest.Options) (*ses.Mailer, *sestest.Server) {
	t.Helper()
	s, err := sestest.Serve(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return ses.New(aws.Config{
		Region: "eu-west-1", BaseEndpoint: &s.URL, HTTPClient: &http.Client{Timeout: 5 * time.Second},
		RetryMaxAttempts: 3, // which Send must ignore
		Credentials:      aws.AnonymousCredentials{},
	}, ses.Options{From: "Shop <receipts@shop.invalid>", ConfigurationSet: "receipts", Scope: scope}), s
}

func mail(t *testing.T, to string) receipt.Mail {
	t.Helper()
	a, err := receipt.NewAddress(to)
	if err != nil {
		t.Fatal(err)
	}
	return receipt.Mail{
		To: a, Subject: "Quittung für A.1", Text: "text", HTML: "<p>html</p>", OrderID: "A.1", Key: receipt.OfRefund("R.1"), Attempt: 2,
	}
}

// A second request could be a second e-mail, so each failure costs exactly one.
func TestAFailedRequestIsClassifiedAndNotRepeated(t *testing.T) {
	refuse := func(status int, code string) sestest.Fault {
		return sestest.Fault{Kind: sestest.Refuse, Status: status, Code: code}
	}
	for claim, tt := range map[string]struct {
		fault sestest.Fault
		kind  order.ErrorKind
		sent  int
	}{
		"a throttled request was not sent":            {refuse(429, "TooManyRequestsException"), order.KindUnavailable, 0},
		"a server error may have sent it":             {refuse(500, "InternalServiceErrorException"), order.KindUnknown, 0},
		"a lost request may have sent it":             {sestest.Fault{Kind: sestest.LoseBefore}, order.KindUnknown, 0},
		"a lost answer may have sent it, and did":     {sestest.Fault{Kind: sestest.LoseAfter}, order.KindUnknown, 1},
		"a connection that was reset may have, too":   {sestest.Fault{Kind: sestest.Reset}, order.KindUnknown, 1},
		"an unreadable answer may have, too, and did": {sestest.Fault{Kind: sestest.Garble}, order.KindUnknown, 1},
	} {
		t.Run(claim, func(t *testing.T) {
			m, s := serve(t, sestest.Options{})
			// The next message is sent over a kept connection, which net/http might send again.
			if _, err := m.Send(t.Context(), mail(t, "warm@example.invalid")); err != nil || len(s.Sent()) != 1 {
				t.Fatalf("first message: %v", err)
			}
			s.Fail(tt.fault)
			_, err := m.Send(t.Context(), mail(t, "canary@example.invalid"))
			got, ok := errors.AsType[*receipt.SendError](err)
			if !ok || got.Kind != tt.kind || tt.fault.Kind == sestest.Refuse && got.Code != tt.fault.Code && tt.fault.Code != "" {
				t.Errorf("got %v, want kind %s and code %q", err, tt.kind, tt.fault.Code)
			}
			if s.Calls() != 2 || len(s.Sent()) != 1+tt.sent {
				t.Errorf("%d requests and %d e-mails, want 2 and %d with the first", s.Calls(), len(s.Sent()), 1+tt.sent)
			}
			if err != nil && strings.Contains(err.Error(), "canary") {
				t.Errorf("the error has the address: %v", err)
			}
		})
	}
}

// The kind of each code and status of SES's, and of AWS in general.
func TestEveryRefusalHasAKind(t *testing.T) {
	m, s := serve(t, sestest.Options{})
	for kind, refusals := range map[order.ErrorKind]string{
		order.KindUnavailable: "429 TooManyRequestsException, 400 LimitExceededException, 400 ThrottlingException, 400 Throttling, 429 x",
		order.KindMisconfigured: "400 AccountSuspendedException, 400 SendingPausedException, 404 NotFoundException, " +
			"400 MailFromDomainNotVerifiedException, 401 x, 403 x, 404 x",
		order.KindRefused: "400 MessageRejected, 400 BadRequestException, 413 x",
		order.KindUnknown: "408 RequestTimeoutException, 500 x, 504 x",
	} {
		for refusal := range strings.SplitSeq(refusals, ", ") {
			fault := sestest.Fault{Kind: sestest.Refuse}
			if _, err := fmt.Sscan(refusal, &fault.Status, &fault.Code); err != nil {
				t.Fatal(err)
			}
			s.Fail(fault)
			_, err := m.Send(t.Context(), mail(t, "canary@example.invalid"))
			if got, ok := errors.AsType[*receipt.SendError](err); !ok || got.Kind != kind || got.Code != fault.Code {
				t.Errorf("%s: got %v, want %s", refusal, err, kind)
			}
		}
	}
	closed, s := serve(t, sestest.Options{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := closed.Send(t.Context(), mail(t, "canary@example.invalid"))
	if got, ok := errors.AsType[*receipt.SendError](err); !ok || got.Kind != order.KindUnavailable {
		t.Errorf("no connection: got %v, want unavailable", err)
	}
}

// An e-mail has the ids that its events come back with.
func TestSendAndDecodeEvent(t *testing.T) {
	for to, want := range map[string][]receipt.Report{
		"canary@example.invalid":    {{Status: receipt.Sent}, {Status: receipt.Delivered}},
		"bounce@example.invalid":    {{Status: receipt.Sent}, {Status: receipt.Bounced, Code: "Permanent/General"}},
		"complaint@example.invalid": {{Status: receipt.Sent}, {Status: receipt.Delivered}, {Status: receipt.Delivered}},
	} {
		var events []json.RawMessage
		m, s := serve(t, sestest.Options{Publish: func(e json.RawMessage) { events = append(events, e) }})
		id, err := m.Send(t.Context(), mail(t, to))
		if err != nil {
			t.Fatal(err)
		}
		sent := []sestest.Email{{
			ID: string(id), From: "Shop <receipts@shop.invalid>", To: to,
			Subject: "Quittung für A.1", Text: "text", HTML: "<p>html</p>", ConfigurationSet: "receipts",
			Tags: map[string]string{
				"orderonce-scope": "test", "orderonce-order": "QS4x", "orderonce-receipt": "cmVmdW5kI1IuMQ",
				"orderonce-attempt": "2",
			},
		}}
		if diff := cmp.Diff(s.Sent(), sent); diff != "" {
			t.Errorf("mailbox (-got +want):\n%s", diff)
		}
		if len(events) != len(want) {
			t.Fatalf("%s: got %d events, want %d", to, len(events), len(want))
		}
		for i, e := range events {
			got, wanted, err := ses.DecodeEvent(string(e), scope)
			want[i].Message, want[i].Attempt = id, 2
			expected := ses.Event{OrderID: "A.1", Key: receipt.OfRefund("R.1"), Report: want[i]}
			if diff := cmp.Diff(got, expected); err != nil || !wanted || diff != "" {
				t.Errorf("%s: wanted %v, %v (-got +want):\n%s", to, wanted, err, diff)
			}
			if _, wanted, err := ses.DecodeEvent(string(e), "other"); wanted || err != nil {
				t.Errorf("%s: in another scope: wanted %v, %v", to, wanted, err)
			}
		}
	}
}

// accepts is a service that accepts a message without naming it.
type accepts struct{}

func (accepts) Do(*http.Request) (*http.Response, error) {
	body := io.NopCloser(strings.NewReader("{}"))
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: body}, nil
}

func TestAnAnswerWithoutAMessageIDMayHaveSentIt(t *testing.T) {
	cfg := aws.Config{Region: "eu-west-1", HTTPClient: accepts{}, Credentials: aws.AnonymousCredentials{}}
	id, err := ses.New(cfg, ses.Options{From: "a@b.invalid", Scope: scope}).Send(t.Context(), mail(t, "a@b.invalid"))
	if got, ok := errors.AsType[*receipt.SendError](err); !ok || got.Kind != order.KindUnknown || id != "" {
		t.Errorf("got %q, %v, want unknown", id, err)
	}
}

// eventOf is an event of SES's about e-mail 1, with the tags of order A.1.
func eventOf(kind, mail string) string {
	return `{"source":"aws.ses","detail":{"eventType":"` + kind + `","mail":{` + mail + `}}}`
}

const (
	tags     = `"tags":{"orderonce-scope":["test"],"orderonce-order":["QS4x"],"orderonce-receipt":["cGFpZA"],"orderonce-attempt":["1"]}`
	withTags = `"messageId":"canary",` + tags
)

func TestAnEventOfOthersIsIgnoredOrInvalid(t *testing.T) {
	for _, kind := range []string{"Reject", "Rendering Failure"} { // the service stopped the e-mail
		got, wanted, err := ses.DecodeEvent(eventOf(kind, withTags), scope)
		want := receipt.Report{Message: "canary", Status: receipt.Failed, Code: kind, Attempt: 1}
		if !wanted || err != nil || got.OrderID != "A.1" || got.Key != receipt.Paid || got.Report != want {
			t.Errorf("%s: got %+v, %v, %v, want %+v", kind, got, wanted, err, want)
		}
	}
	for body, wantErr := range map[string]bool{
		eventOf("Open", withTags):                                                           false,
		eventOf("Delivery", `"messageId":"1"`):                                              false,
		eventOf("Delivery", tags):                                                           true, // without the id of an e-mail
		strings.Replace(eventOf("Delivery", withTags), "aws.ses", "other", 1):               true,
		strings.Replace(eventOf("Delivery", withTags), `,"orderonce-attempt":["1"]`, "", 1): true,
		strings.Replace(eventOf("Delivery", withTags), `["1"]`, `["1","2"]`, 1):             true,
		strings.Replace(eventOf("Delivery", withTags), "QS4x", "YSBi", 1):                   true, // "a b" is no id
		strings.Replace(eventOf("Delivery", withTags), "}}}}", "}}}", 1):                    true,
		`{"source":"aws.ses","detail":{}}`:                                                  true,
	} {
		_, wanted, err := ses.DecodeEvent(body, scope)
		if wanted || (err != nil) != wantErr || err != nil && strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: wanted %v, error %v, want error %v", body, wanted, err, wantErr)
		}
	}
}

func FuzzDecodeEvent(f *testing.F) {
	f.Add(eventOf("Send", withTags))
	f.Fuzz(func(t *testing.T, body string) {
		e, wanted, err := ses.DecodeEvent(body, scope)
		if !wanted || err != nil {
			return
		}
		if _, err := receipt.ParseKey(string(e.Key)); err != nil || !order.ValidID(string(e.OrderID)) || e.Report.Message == "" {
			t.Errorf("got %+v of %q, want valid ids", e, body)
		}
	})
}
