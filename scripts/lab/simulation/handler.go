package simulation

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // G501: SQS checks what it sends with MD5
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/domain/order"
)

// What the deployed handler is told (functions/order).
const (
	orderBudget = 10 * time.Second
	answerTime  = 3 * time.Second
)

// invocation is a worker that runs the deployed handler with one batch, over a pretend
// SQS. The handler has goroutines of its own, one at a time, so the world and it hand a
// turn to one another instead of being one coroutine.
type invocation struct {
	*Worker

	turn     chan bool // false: it is dead
	standing chan call
	over     chan struct{}
	parked   map[int]bool // what it has parked, by the place in the case
	counts   map[string]int
	finished map[order.ID]bool // what it was told to have settled
	started  map[string]bool   // message ids whose orders it has begun to work on
}

func (k *Worker) liveInHandler() {
	v := &invocation{
		Worker: k, turn: make(chan bool), standing: make(chan call), over: make(chan struct{}),
		parked: map[int]bool{}, counts: map[string]int{}, finished: map[order.ID]bool{}, started: map[string]bool{},
	}
	k.in = v
	k.wait = func(c call) bool {
		v.standing <- c
		return <-v.turn
	}
	started := false
	k.next = func() (call, bool) {
		if started {
			v.turn <- true
		} else {
			started = true
			go v.live()
		}
		return v.stands()
	}
	k.stop = func() {
		select {
		case <-v.over:
		default:
			k.dead = true
			v.turn <- false
			<-v.over
		}
	}
}

func (v *invocation) stands() (call, bool) {
	select {
	case c := <-v.standing:
		return c, true
	case <-v.over:
		return call{}, false
	}
}

// live is what Lambda and its event source mapping do with a batch.
func (v *invocation) live() {
	defer close(v.over)
	var e events.SQSEvent
	must(json.Unmarshal(sqstest.Event(v.ordersQueue, v.messages), &e))
	ctx, cancel := context.WithDeadline(context.Background(), v.now.Add(functionTime))
	defer cancel()
	said, err := v.handler().Handle(ctx, e)
	if v.dead {
		return // nobody hears what a dead function says
	}
	text := must1(json.Marshal(said))
	_ = v.call(
		call{name: reply, subject: "answers", detail: strconv.Itoa(len(said.BatchItemFailures)) + " failures"},
		func() (answer, error) {
			ids := make([]string, len(v.messages))
			for i, m := range v.messages {
				ids[i] = m.ID
			}
			deleted, _ := sqstest.Verdict(ids, text, err)
			v.remove(deleted)
			return answer{text: strconv.Itoa(len(deleted)) + " deleted"}, nil
		},
	)
}

// remove deletes what the function had done, and asks the oracle whether it may.
func (v *invocation) remove(deleted []string) {
	received := v.counts[sqs.MetricReceived]
	answered := v.counts[sqs.MetricSettled] + v.counts[sqs.MetricDuplicates] +
		v.counts[sqs.MetricRedelivered] + v.counts[sqs.MetricParked]
	id := v.Messages[numberOf(v.messages[0])].ID
	v.oracle.must(received == answered && received == len(v.messages), AllAnswered, id,
		"%d messages were received, and %d answered of %d", received, answered, len(v.messages))
	v.inOrder(deleted)
	for _, m := range v.messages {
		i := numberOf(m)
		if slices.Contains(deleted, m.ID) {
			if !v.parked[i] {
				v.oracle.acknowledged(v.Worker, m)
			}
			_ = v.queue.Delete(v.now, v.ordersQueue, m.Receipt) // a receipt that is out of date deletes nothing
			continue
		}
		id := v.Messages[i].ID
		v.oracle.must(
			!v.finished[id] || v.several(id),
			NeighborsApart,
			id,
			"message %d comes back, although its order was settled",
			i+1,
		)
	}
}

// starts notes that the handler begins to work on an order. In a FIFO group nothing
// overtakes a message that has to come back or could not be parked.
func (k *Worker) starts(o order.Order) {
	v := k.in
	if v == nil {
		return
	}
	place := slices.IndexFunc(v.messages, func(m sqstest.Message) bool {
		return !v.started[m.ID] && v.Messages[numberOf(m)].Poison == "" &&
			v.lab.order(m.Body).Fingerprint() == o.Fingerprint()
	})
	if place < 0 {
		return
	}
	v.started[v.messages[place].ID] = true
	for _, m := range v.ahead(place) {
		i := numberOf(m)
		r, known := v.row(v.Messages[i].ID)
		gone := v.parked[i] || known && atEnd(r.Status) && *v.oracle.of(r.OrderID).claimed == v.Messages[i]
		v.oracle.must(
			gone,
			NeighborsApart,
			o.ID(),
			"work on it begins, and message %d of its group, which comes first, is not done",
			i+1,
		)
	}
}

// inOrder checks an answer about a batch: what follows a message that comes back comes
// back too, and was not worked on.
func (v *invocation) inOrder(deleted []string) {
	for place, m := range v.messages {
		for _, first := range v.ahead(place) {
			overtakes := !slices.Contains(deleted, first.ID) && (v.started[m.ID] || slices.Contains(deleted, m.ID))
			v.oracle.must(!overtakes, NeighborsApart, v.Messages[numberOf(m)].ID,
				"message %d has overtaken message %d of its group, which comes back", numberOf(m)+1, numberOf(first)+1)
		}
	}
}

// ahead lists the messages of a batch that come before another one in its FIFO group.
func (v *invocation) ahead(place int) []sqstest.Message {
	if !v.FIFO {
		return nil
	}
	group := v.messages[place].Group
	return slices.DeleteFunc(
		slices.Clone(v.messages[:place]),
		func(m sqstest.Message) bool { return m.Group != group },
	)
}

func (v *invocation) handler() *sqs.Handler {
	url := "http://sqs.test/"
	cfg := aws.Config{
		Region: sqstest.Region, BaseEndpoint: &url, HTTPClient: v,
		Retryer: func() aws.Retryer { return aws.NopRetryer{} },
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "pretend", SecretAccessKey: "pretend"}, nil
		}),
	}
	owners := 0
	return &sqs.Handler{
		Process: v.processor().Process, NoteParked: records{v.Worker}.Park, Decode: v.lab.decoder.Decode,
		Queue: sqs.NewQueue(cfg, url+v.ordersQueue, url+v.deadQueue), Policy: v.policy,
		Log: slog.New(slog.DiscardHandler), Meter: v, Now: v.Now, Jitter: func() float64 { return 0.5 },
		NewOwner:  func() string { owners++; return "owner-" + v.name + "-" + strconv.Itoa(owners) },
		RequestID: func(context.Context) string { return v.name },
		Parallel:  1, OrderBudget: orderBudget, AnswerTime: answerTime,
	}
}

// Count and the others make an invocation its own meter.
func (v *invocation) Count(metric, _, _ string) { v.counts[metric]++ }

// Observe counts nothing.
func (v *invocation) Observe(string, string, string, time.Duration) {}

// Flush has nothing to do.
func (v *invocation) Flush() {}

// die ends the goroutine that makes a call; the handler recovers from panics.
func (k *Worker) die() {
	k.dead = true
	if k.in != nil {
		runtime.Goexit()
	}
	panic(gone{})
}

// panics reports whether a bug may strike where the worker stands.
func (k *Worker) panics() bool {
	return k.in != nil && k.at.name != reply && k.at.name != park && k.at.name != back
}

// request is what the handler asks of SQS (API reference, SendMessage and
// ChangeMessageVisibilityBatch).
type request struct {
	MessageBody       string
	MessageAttributes map[string]struct{ DataType, StringValue string }

	MessageGroupID         string `json:"MessageGroupId"`
	MessageDeduplicationID string `json:"MessageDeduplicationId"`

	Entries []struct {
		ID                string `json:"Id"`
		ReceiptHandle     string
		VisibilityTimeout int64
	}
}

// Do is the pretend SQS, as the SDK reaches it.
func (v *invocation) Do(r *http.Request) (*http.Response, error) {
	var in request
	must(json.NewDecoder(r.Body).Decode(&in))
	c, answers := call{name: back}, v.giveBack
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".SendMessage") {
		c, answers = call{name: park, subject: "for " + in.MessageAttributes[sqs.AttrReason].StringValue}, v.park
	}
	var out any
	status, err := http.StatusOK, v.call(c, func() (answer, error) {
		out = answers(in)
		return answer{text: "ok"}, nil
	})
	switch {
	case errors.Is(err, errDenied):
		status, out = http.StatusForbidden, map[string]string{
			"__type":  "com.amazon.coral.service#AccessDeniedException",
			"message": "denied",
		}
	case err != nil:
		return nil, err
	}
	body := must1(json.Marshal(out))
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}, nil
}

func (v *invocation) park(in request) any {
	attributes := map[string]sqstest.Attribute{}
	for name, a := range in.MessageAttributes {
		attributes[name] = sqstest.Attribute{Type: a.DataType, Text: a.StringValue}
	}
	must1(v.queue.Send(v.now, v.deadQueue, sqstest.Draft{
		Body: in.MessageBody, Attributes: attributes,
		Group: in.MessageGroupID, DeduplicationID: in.MessageDeduplicationID,
	}))
	for _, m := range v.messages {
		if i := numberOf(m); strconv.Itoa(i) == attributes[number].Text {
			v.parked[i] = true
			v.oracle.parked(v.Worker, m, order.Reason(attributes[sqs.AttrReason].Text))
		}
	}
	sum := md5.Sum([]byte(in.MessageBody)) //nolint:gosec // G401: as above
	return map[string]string{"MessageId": "pretend", "MD5OfMessageBody": hex.EncodeToString(sum[:])}
}

func (v *invocation) giveBack(in request) any {
	type entry struct {
		ID          string `json:"Id"`
		Code        string `json:",omitempty"`
		SenderFault bool   `json:",omitempty"`
	}
	out := map[string][]entry{"Successful": {}, "Failed": {}}
	for _, e := range in.Entries {
		if err := v.hide(e.ReceiptHandle, time.Duration(e.VisibilityTimeout)*time.Second); err != nil {
			refused, _ := errors.AsType[*sqstest.Error](err) // the machine returns no other error
			out["Failed"] = append(out["Failed"], entry{ID: e.ID, Code: refused.Code, SenderFault: true})
			continue
		}
		out["Successful"] = append(out["Successful"], entry{ID: e.ID})
	}
	return out
}

// several reports whether more than one message of the batch is about an order.
func (v *invocation) several(id order.ID) bool {
	n := 0
	for _, m := range v.messages {
		n += int(bit(v.Messages[numberOf(m)].ID == id))
	}
	return n > 1
}
