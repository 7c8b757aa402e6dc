package sqstest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"orderonce/adapters/sqs/sqstest"
)

func TestAQueueIsNotItsOwnDeadLetterQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, err := w.Settings("orders")
	w.must(err)
	s.DeadLetters = "orders"
	if got, want := code(w.Configure(w.now, "orders", s)), sqstest.CodeInvalidParameterValue; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAMessageDoesNotGoRoundACircleOfQueuesForEver(t *testing.T) {
	t.Parallel()
	f := newFace(t, sqstest.Options{})
	f.Machine(func(m *sqstest.Machine, now time.Time) {
		back := sqstest.DefaultSettings()
		back.DeadLetters, back.MaxReceives = "orders", 1
		if err := m.Configure(now, "dead", back); err != nil {
			t.Error(err)
		}
		picks := 0
		m.Pick = func(int) int {
			if picks++; picks > 100 {
				panic("a message goes round for ever")
			}
			return 0
		}
	})
	f.send()
	f.receive(sqs.ReceiveMessageInput{VisibilityTimeout: 1})
	f.add(time.Second)
	f.receive(sqs.ReceiveMessageInput{VisibilityTimeout: 10}) // the last one that the policy allows
	orders := f.polling(t.Context())
	f.url = f.QueueURL("dead")
	dead := f.polling(t.Context())
	for _, wait := range []time.Duration{10 * time.Second, 10 * time.Second} { // until it is visible, until the polls are over
		f.add(wait)
		f.Wake()
	}
	if a, b := <-orders, <-dead; len(a)+len(b) != 0 {
		t.Errorf("got %v and %v, want a message that may be received from neither queue", a, b)
	}
	f.Machine(func(m *sqstest.Machine, now time.Time) {
		a, _ := m.Counts(now, "orders")
		b, _ := m.Counts(now, "dead")
		if a.Visible+b.Visible != 1 {
			t.Errorf("got %+v and %+v, want the message in one of them", a, b)
		}
	})
}

// API reference, SetQueueAttributes, RedriveAllowPolicy: allowAll, denyAll, byQueue.
func TestARedriveAllowPolicyDecidesWhoNamesTheQueue(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]string{
		"":                                 "",
		`{"redrivePermission":"allowAll"}`: "",
		`{"redrivePermission":"denyAll"}`:  sqstest.CodeInvalidParameterValue,
		`{"redrivePermission":"byQueue","sourceQueueArns":["` + sqstest.ARN("new") + `"]}`:   "",
		`{"redrivePermission":"byQueue","sourceQueueArns":["` + sqstest.ARN("other") + `"]}`: sqstest.CodeInvalidParameterValue,
	} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			f := newFace(t, sqstest.Options{})
			if err := f.set("dead", "RedriveAllowPolicy", policy); err != nil {
				t.Fatal(err)
			}
			if got := f.attribute("dead", "RedriveAllowPolicy"); got != policy {
				t.Errorf("got the policy %q, want %q", got, policy)
			}
			_, err := f.sdk.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("new"), Attributes: map[string]string{
				"RedrivePolicy": `{"deadLetterTargetArn":"` + sqstest.ARN("dead") + `","maxReceiveCount":5}`,
			}})
			if got := apiCode(err); got != want {
				t.Errorf("got %q (%v) for a new source, want %q", got, err, want)
			}
			if err := f.set("orders", "VisibilityTimeout", "31"); err != nil {
				t.Errorf("got %v for a source that names it already, want no error", err)
			}
			if err := f.set("dead", "RedriveAllowPolicy", ""); err != nil || f.attribute("dead", "RedriveAllowPolicy") != "" {
				t.Errorf("the policy was not removed: %v", err)
			}
		})
	}
}

// The same page: "You can specify this parameter only when the redrivePermission parameter is set to byQueue. You can specify up to 10
// source queue ARNs".
func TestWhatARedriveAllowPolicyMayNotSay(t *testing.T) {
	t.Parallel()
	f := newFace(t, sqstest.Options{})
	sources := func(n int) string {
		return `,"sourceQueueArns":[` + strings.TrimSuffix(strings.Repeat(`"`+sqstest.ARN("orders")+`",`, n), ",") + `]}`
	}
	for _, policy := range []string{
		`byQueue`, `{}`, `{"redrivePermission":"sometimes"}`, `{"redrivePermission":"byQueue"}`, `{"redrivePermission":"byQueue"` + sources(11),
		`{"redrivePermission":"byQueue","sourceQueueArns":[""]}`,
		`{"redrivePermission":"allowAll"` + sources(1), `{"redrivePermission":"denyAll"` + sources(1),
	} {
		if got := apiCode(f.set("dead", "RedriveAllowPolicy", policy)); got != sqstest.CodeInvalidAttributeValue {
			t.Errorf("%s: got %q, want %q", policy, got, sqstest.CodeInvalidAttributeValue)
		}
	}
	if err := f.set("dead", "RedriveAllowPolicy", `{"redrivePermission":"byQueue"`+sources(10)); err != nil {
		t.Errorf("got %v for ten sources", err)
	}
}

func (f *face) set(queue, attribute, value string) error {
	f.t.Helper()
	_, err := f.sdk.SetQueueAttributes(f.t.Context(), &sqs.SetQueueAttributesInput{
		QueueUrl: aws.String(f.QueueURL(queue)), Attributes: map[string]string{attribute: value},
	})
	return err
}

func (f *face) attribute(queue, name string) string {
	f.t.Helper()
	got, err := f.sdk.GetQueueAttributes(f.t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: aws.String(f.QueueURL(queue)), AttributeNames: []types.QueueAttributeName{types.QueueAttributeName(name)},
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return got.Attributes[name]
}
