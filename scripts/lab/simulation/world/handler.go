package world

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // G501: SQS checks what it sends with MD5
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/orders"
	"orderonce/adapters/sqs/refunds"
	"orderonce/adapters/sqs/sqstest"
	"orderonce/domain/order"
	"orderonce/scripts/lab/simulation/oracle"
)

// The settings of the deployed handler (functions/order).
const (
	orderBudget = 10 * time.Second
	answerTime  = 3 * time.Second
)

// invocation is a worker that runs the deployed handler with one batch, over a pretend
// SQS.
type invocation struct {
	worker *Worker
	batch  *oracle.Batch
	counts map[string]int // the handler's metrics
}

func (k *Worker) useHandler() {
	k.handler = &invocation{worker: k, batch: k.newBatch(), counts: map[string]int{}}
	k.task.run, k.task.threads = func(k *Worker) { k.handler.run() }, true
}

func (k *Worker) newBatch() *oracle.Batch {
	all := make([]oracle.Delivery, len(k.messages))
	for i, m := range k.messages {
		all[i] = delivery(m)
	}
	return k.world.oracle.NewBatch(all)
}

// run does what Lambda and its event source mapping do with a batch.
func (v *invocation) run() {
	k, w := v.worker, v.worker.world
	var e events.SQSEvent
	must(json.Unmarshal(sqstest.Event(w.queue.orders, k.messages), &e))
	ctx, cancel := context.WithDeadline(context.Background(), w.Now.Add(oracle.FunctionTime))
	defer cancel()
	out, err := v.handler().Handle(ctx, e)
	if k.dead || k.Dead() {
		return // the response of a dead function is lost
	}
	text := must1(json.Marshal(out))
	failures := fmt.Sprintf("with %d failures", len(out.BatchItemFailures))
	_ = k.call(oracle.Call{Name: oracle.Reply, Subject: "answers", Detail: failures}, func() (response, error) {
		ids := make([]string, len(k.messages))
		for i, m := range k.messages {
			ids[i] = m.ID
		}
		deleted, _ := sqstest.Verdict(ids, text, err)
		v.remove(deleted)
		return response{text: strconv.Itoa(len(deleted)) + " deleted"}, nil
	})
}

func (v *invocation) remove(deleted []string) {
	n, w := v.counts, v.worker.world
	answered := n[orders.MetricSettled] + n[refunds.MetricRefunds] + n[sqs.MetricDuplicates] +
		n[sqs.MetricRedelivered] + n[sqs.MetricParked]
	v.batch.Ended(deleted, n[sqs.MetricReceived], answered)
	for _, m := range v.worker.messages {
		if slices.Contains(deleted, m.ID) {
			_ = w.queue.Delete(w.Now, w.queue.orders, m.Handle) // an expired handle deletes nothing
		}
	}
}

func (v *invocation) handler() *sqs.Handler {
	k, w := v.worker, v.worker.world
	url := "http://sqs.test/"
	cfg := aws.Config{
		Region: sqstest.Region, BaseEndpoint: &url, HTTPClient: v,
		Retryer: func() aws.Retryer { return aws.NopRetryer{} },
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "pretend", SecretAccessKey: "pretend"}, nil
		}),
	}
	owners := 0
	tasks := orders.Tasks{
		Decoder: w.lab.decoder, Process: k.processor().Process, NoteParked: k.noteParked,
	}
	return &sqs.Handler{
		Decode: tasks.Task,
		Queue:  sqs.NewQueue(cfg, url+w.queue.orders, url+w.queue.dead), Policy: w.services.policy,
		Log: slog.New(slog.DiscardHandler), Meter: v, Now: k.Now, Jitter: func() float64 { return 0.5 },
		NewOwner:  func() string { owners++; return "owner-" + k.Name + "-" + strconv.Itoa(owners) },
		RequestID: func(context.Context) string { return k.Name },
		Parallel:  1, OrderBudget: orderBudget, AnswerTime: answerTime,
	}
}

func (v *invocation) Count(metric, _, _ string) { v.counts[metric]++ }

// Observe implements sqs.Meter. It records nothing.
func (v *invocation) Observe(string, string, string, time.Duration) {}

// Flush implements sqs.Meter. It does nothing.
func (v *invocation) Flush() {}

func (k *Worker) mayPanic() bool { return k.handler != nil && !k.next.ToQueue() }

// request is a request of the handler to SQS (API reference, SendMessage and
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

// Do implements aws.HTTPClient. It is the pretend SQS.
func (v *invocation) Do(r *http.Request) (*http.Response, error) {
	var in request
	must(json.NewDecoder(r.Body).Decode(&in))
	c, answer := oracle.Call{Name: oracle.Return}, v.changeVisibility
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".SendMessage") {
		why := in.MessageAttributes[sqs.AttrReason].StringValue
		c, answer = oracle.Call{Name: oracle.Park, Subject: "for " + why}, v.sendMessage
	}
	var out any
	status, err := http.StatusOK, v.worker.call(c, func() (response, error) {
		out = answer(in)
		return ok(), nil
	})
	switch {
	case errors.Is(err, errDenied):
		status = http.StatusForbidden
		out = map[string]string{"__type": "com.amazon.coral.service#AccessDeniedException", "message": "denied"}
	case err != nil:
		return nil, err
	}
	body := must1(json.Marshal(out))
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}, nil
}

func (v *invocation) sendMessage(in request) any {
	w, attributes := v.worker.world, map[string]sqstest.Attribute{}
	for name, a := range in.MessageAttributes {
		attributes[name] = sqstest.Attribute{Type: a.DataType, Text: a.StringValue}
	}
	must1(w.queue.Send(w.Now, w.queue.dead, sqstest.Draft{
		Body: in.MessageBody, Attributes: attributes,
		Group: in.MessageGroupID, DeduplicationID: in.MessageDeduplicationID,
	}))
	for _, m := range v.worker.messages {
		if i := numberOf(m); strconv.Itoa(i) == attributes[number].Text {
			v.batch.Parked(i)
			v.worker.parked(m, order.Reason(attributes[sqs.AttrReason].Text))
		}
	}
	sum := md5.Sum([]byte(in.MessageBody)) //nolint:gosec // G401: as above
	return map[string]string{"MessageId": "pretend", "MD5OfMessageBody": hex.EncodeToString(sum[:])}
}

func (v *invocation) changeVisibility(in request) any {
	type entry struct {
		ID          string `json:"Id"`
		Code        string `json:",omitempty"`
		SenderFault bool   `json:",omitempty"`
	}
	out := map[string][]entry{"Successful": {}, "Failed": {}}
	for _, e := range in.Entries {
		err := v.worker.world.hide(e.ReceiptHandle, time.Duration(e.VisibilityTimeout)*time.Second)
		if err != nil {
			refused, _ := errors.AsType[*sqstest.Error](err) // the machine returns no other error
			out["Failed"] = append(out["Failed"], entry{ID: e.ID, Code: refused.Code, SenderFault: true})
			continue
		}
		out["Successful"] = append(out["Successful"], entry{ID: e.ID})
	}
	return out
}
