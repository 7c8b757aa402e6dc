package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// sqsRun calls SQS. Real queues are spread over servers, so a check looks for a message
// with a long poll.
type sqsRun struct {
	*Run

	sqs *sqs.Client
}

// sqsRule returns a rule of SQS.
func sqsRule(id, says, source string, check func(sqsRun)) Rule {
	return Rule{ID: "sqs/" + id, Says: says, Source: source, Check: func(r *Run) { check(newSQSRun(r)) }}
}

// newSQSRun returns a run whose client leaves digests to the checks.
func newSQSRun(r *Run) sqsRun {
	return sqsRun{r, sqs.NewFromConfig(r.Config, func(o *sqs.Options) { o.DisableMessageChecksumValidation = true })}
}

// queue creates a queue, of which name ends in .fifo for a FIFO queue, with attributes in
// pairs of name and value, and returns its URL.
func (s sqsRun) queue(name string, attributes ...string) (url string) {
	in := &sqs.CreateQueueInput{
		QueueName: aws.String(s.Name(name)), Attributes: map[string]string{}, Tags: map[string]string{"orderonce": "conform"},
	}
	for pair := range slices.Chunk(attributes, 2) {
		in.Attributes[pair[0]] = pair[1]
	}
	if strings.HasSuffix(name, ".fifo") {
		in.Attributes["FifoQueue"] = "true"
	}
	out, err := s.sqs.CreateQueue(s.Context, in)
	s.Must(err)
	s.Defer(func(ctx context.Context) error {
		_, err := s.sqs.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: out.QueueUrl})
		return err
	})
	s.Pass(time.Second) // CreateQueue: "you must wait at least one second after the queue is created"
	return *out.QueueUrl
}

// pair creates a queue and its dead-letter queue.
func (s sqsRun) pair(suffix string, maxReceives int, attributes ...string) (queue, dead string) {
	dead = s.queue("dead" + suffix)
	policy, _ := json.Marshal(map[string]any{"deadLetterTargetArn": s.arn(dead), "maxReceiveCount": maxReceives})
	return s.queue("q"+suffix, append(attributes, "RedrivePolicy", string(policy))...), dead
}

func (s sqsRun) arn(queue string) string { return s.attributes(queue, "QueueArn")["QueueArn"] }

func (s sqsRun) attributes(queue string, names ...types.QueueAttributeName) map[string]string {
	out, err := s.sqs.GetQueueAttributes(s.Context, &sqs.GetQueueAttributesInput{QueueUrl: &queue, AttributeNames: names})
	s.Must(err)
	return out.Attributes
}

// try sends a message, whatever comes of it.
func (s sqsRun) try(queue, body string, change ...func(*sqs.SendMessageInput)) (*sqs.SendMessageOutput, error) {
	in := &sqs.SendMessageInput{QueueUrl: &queue, MessageBody: &body}
	for _, f := range change {
		f(in)
	}
	return s.sqs.SendMessage(s.Context, in)
}

// send sends bodies, and returns the id of the last one. On a FIFO queue the first letter
// of a body is its group, and the body its deduplication id.
func (s sqsRun) send(queue string, bodies ...string) (id string) {
	for _, body := range bodies {
		out, err := s.try(queue, body, func(in *sqs.SendMessageInput) {
			if strings.HasSuffix(queue, ".fifo") {
				in.MessageGroupId, in.MessageDeduplicationId = aws.String(body[:1]), &body
			}
		})
		s.Must(err)
		id = *out.MessageId
	}
	return id
}

// with returns a change that adds a message attribute.
func with(name, kind, text string) func(*sqs.SendMessageInput) {
	return func(in *sqs.SendMessageInput) {
		all := maps.Clone(in.MessageAttributes)
		if all == nil {
			all = map[string]types.MessageAttributeValue{}
		}
		all[name], in.MessageAttributes = types.MessageAttributeValue{DataType: &kind, StringValue: &text}, all
	}
}

// short returns how long a receive waits for a message that may be there. A double has
// what its clock lets it have, and its clock stands still.
func (s sqsRun) short() int32 {
	if s.double() {
		return 0
	}
	return 3
}

// receive receives up to n messages, with all their attributes.
func (s sqsRun) receive(queue string, n int, change ...func(*sqs.ReceiveMessageInput)) ([]types.Message, error) {
	in := &sqs.ReceiveMessageInput{
		QueueUrl: &queue, MaxNumberOfMessages: int32(n), WaitTimeSeconds: s.short(), //nolint:gosec // G115: at most 11
		MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"},
	}
	for _, f := range change {
		f(in)
	}
	out, err := s.sqs.ReceiveMessage(s.Context, in)
	if err != nil {
		return nil, err
	}
	return out.Messages, nil
}

// take wants these messages and no others, each as its body and receive count, in this
// order, and ends the check if they do not come.
func (s sqsRun) take(queue string, want ...string) (all []types.Message) {
	var got []string
	for len(got) == 0 || len(got) < len(want) {
		more, err := s.receive(queue, max(1, len(want)-len(got)))
		s.Must(err)
		for _, m := range more {
			got = append(got, *m.Body+":"+m.Attributes["ApproximateReceiveCount"])
		}
		if all = append(all, more...); len(more) == 0 {
			break
		}
	}
	if s.Want("messages", strings.Join(got, " "), strings.Join(want, " ")); len(got) != len(want) {
		s.Stop()
	}
	return all
}

func (s sqsRun) remove(queue string, m types.Message) error {
	_, err := s.sqs.DeleteMessage(s.Context, &sqs.DeleteMessageInput{QueueUrl: &queue, ReceiptHandle: m.ReceiptHandle})
	return err
}

// hide changes the visibility timeout of a message that was received.
func (s sqsRun) hide(queue string, m types.Message, seconds int32) error {
	_, err := s.sqs.ChangeMessageVisibility(s.Context, &sqs.ChangeMessageVisibilityInput{
		QueueUrl: &queue, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: seconds,
	})
	return err
}

// refused wants a call to fail with a code.
func (s sqsRun) refused(what string, err error, code string) {
	if kind := kindOf(err); kind != none && kind != refused {
		s.Must(err)
	}
	got, _ := codeOf(err)
	s.Want(what, strings.TrimPrefix(got, "AWS.SimpleQueueService."), code)
}

// Sources and codes.
const (
	sqsAPI     = "SQS API reference, "
	sqsGuide   = "SQS developer guide, "
	localStack = "LocalStack's suite, recorded against AWS, "

	invalidValue = "InvalidParameterValue"
)

// The timeout of the queues of most rules, long enough for a look while it lasts.
const (
	hidden  = 8 * time.Second
	timeout = "VisibilityTimeout"
)

func sqsRules() []Rule {
	return slices.Concat(visibilityRules(), handleRules(), deadLetterRules(), fifoRules(), batchRules(), messageRules(), pollRules())
}

func visibilityRules() []Rule {
	return []Rule{
		sqsRule("visibility", "a received message is hidden for the visibility timeout, and then comes again",
			sqsGuide+"Amazon SQS visibility timeout", func(s sqsRun) {
				q := s.queue("q", timeout, "8")
				s.send(q, "a")
				s.take(q, "a:1")
				s.take(q)
				s.Pass(hidden)
				s.take(q, "a:2")
			}),
		sqsRule("visibility-receive", "the visibility timeout of a receive replaces the queue's",
			sqsAPI+"ReceiveMessage, VisibilityTimeout", func(s sqsRun) {
				q := s.queue("q", timeout, "600")
				s.send(q, "a")
				_, err := s.receive(q, 1, func(in *sqs.ReceiveMessageInput) { in.VisibilityTimeout = 1 })
				s.Must(err)
				s.Pass(2 * time.Second)
				s.take(q, "a:2")
			}),
		sqsRule("first-receive", "the time of the first receive stays when the message comes again",
			sqsAPI+"ReceiveMessage, ApproximateFirstReceiveTimestamp", func(s sqsRun) {
				q := s.queue("q", timeout, "2")
				s.send(q, "a")
				first := s.take(q, "a:1")[0]
				s.Pass(3 * time.Second)
				again := s.take(q, "a:2")[0]
				for _, name := range []string{"SentTimestamp", "ApproximateFirstReceiveTimestamp"} {
					s.Want(name, again.Attributes[name], first.Attributes[name])
				}
			}),
		sqsRule("change-zero", "a visibility timeout changed to zero makes the message visible at once",
			sqsGuide+"Terminating visibility timeout", func(s sqsRun) {
				q := s.queue("q")
				s.send(q, "a")
				s.Must(s.hide(q, s.take(q, "a:1")[0], 0))
				s.take(q, "a:2")
			}),
		sqsRule("change-again", "a changed visibility timeout starts with the call, and is of this receive alone",
			sqsAPI+"ChangeMessageVisibility: the new timeout starts when the action is called", func(s sqsRun) {
				q := s.queue("q", timeout, "8")
				s.send(q, "a")
				m := s.take(q, "a:1")[0]
				s.Pass(4 * time.Second)
				s.Must(s.hide(q, m, 9))
				s.Pass(5 * time.Second)
				s.take(q)
				s.Pass(hidden)
				s.take(q, "a:2")
			}),
		sqsRule("change-limit", "a message is hidden for 12 hours after its receive at most",
			sqsAPI+"ChangeMessageVisibility: \"you can't extend the timeout ... to longer than 12 hours\"", func(s sqsRun) {
				q := s.queue("q")
				s.send(q, "a")
				m := s.take(q, "a:1")[0]
				s.Pass(5 * time.Second)
				s.refused("12 h, 5 s after the receive", s.hide(q, m, 12*3600), invalidValue)
				s.Must(s.hide(q, m, 12*3600-60))
			}),
		sqsRule("change-visible", "a message that is visible again stays so if its timeout is changed",
			localStack+"test_change_message_visibility_after_visibility_timeout_expiration", func(s sqsRun) {
				q := s.queue("q", timeout, "1")
				s.send(q, "a")
				m := s.take(q, "a:1")[0]
				s.Pass(2 * time.Second)
				s.Must(s.hide(q, m, 3600))
				s.take(q, "a:2")
			}),
		sqsRule("change-deleted", "a deleted message's visibility timeout cannot be changed",
			localStack+"test_change_visibility_on_deleted_message_raises_invalid_parameter_value", func(s sqsRun) {
				q := s.queue("q")
				s.send(q, "a")
				m := s.take(q, "a:1")[0]
				s.Must(s.remove(q, m))
				s.refused("change", s.hide(q, m, 60), invalidValue)
			}),
	}
}

func handleRules() []Rule {
	return []Rule{
		sqsRule("delete", "a deleted message does not come again, and can be deleted again",
			sqsAPI+"DeleteMessage; "+localStack+"test_delete_message_with_deleted_receipt_handle", func(s sqsRun) {
				q := s.queue("q", timeout, "1")
				s.send(q, "a")
				m := s.take(q, "a:1")[0]
				s.Must(s.remove(q, m))
				s.Must(s.remove(q, m))
				s.Pass(2 * time.Second)
				s.take(q)
			}),
		sqsRule("delete-late", "on a standard queue the latest handle deletes a message that is visible again",
			localStack+"test_delete_after_visibility_timeout", func(s sqsRun) {
				q := s.queue("q", timeout, "1")
				s.send(q, "a")
				m := s.take(q, "a:1")[0]
				s.Pass(2 * time.Second)
				s.Must(s.remove(q, m))
				s.take(q)
			}),
		sqsRule("delete-old", "on a standard queue a delete with the handle of an older receive succeeds, whether or not it deletes",
			sqsAPI+"DeleteMessage: \"the request will succeed, but the message might not be deleted\"", func(s sqsRun) {
				q := s.queue("q", timeout, "1")
				s.send(q, "a")
				old := s.take(q, "a:1")[0]
				s.Pass(2 * time.Second)
				s.take(q, "a:2")
				s.Must(s.remove(q, old))
			}),
		sqsRule("delete-invalid", "text that is not a receipt handle is refused",
			localStack+"test_delete_message_with_illegal_receipt_handle", func(s sqsRun) {
				err := s.remove(s.queue("q"), types.Message{ReceiptHandle: aws.String("garbage")})
				s.refused("delete", err, "ReceiptHandleIsInvalid")
			}),
	}
}

func deadLetterRules() []Rule {
	const redrive = sqsGuide + "Learn how to configure a dead-letter queue redrive"
	moved := func(s sqsRun, suffix string) (sent, dead types.Message) {
		q, letters := s.pair(suffix, 1, timeout, "1")
		_, err := s.try(q, "a", with("kind", "String", "x"), func(in *sqs.SendMessageInput) {
			if suffix != "" {
				in.MessageGroupId, in.MessageDeduplicationId = aws.String("g"), aws.String("once")
			}
		})
		s.Must(err)
		sent = s.take(q, "a:1")[0]
		s.Pass(2 * time.Second)
		s.take(q)
		return sent, s.take(letters, "a:2")[0]
	}
	return []Rule{
		sqsRule("dead-letter", "a message received maxReceiveCount times moves to the dead-letter queue, and keeps its id and attributes",
			sqsGuide+"Using dead-letter queues; "+localStack+"test_dead_letter_queue_message_attributes", func(s sqsRun) {
				sent, dead := moved(s, "")
				s.Want("id", dead.MessageId, sent.MessageId)
				_, source, _ := strings.Cut(dead.Attributes["DeadLetterQueueSourceArn"], s.Prefix)
				s.Want("source", source, "q")
				s.Want("attribute", aws.ToString(dead.MessageAttributes["kind"].StringValue), "x")
				s.Want("first receive", dead.Attributes["ApproximateFirstReceiveTimestamp"], sent.Attributes["ApproximateFirstReceiveTimestamp"])
			}),
		sqsRule("dead-letter-age", "a dead letter of a standard queue keeps its enqueue time, and so its retention",
			sqsGuide+"Setting-up dead-letter queue retention: \"the enqueue timestamp is unchanged\"", func(s sqsRun) {
				sent, dead := moved(s, "")
				s.Want("SentTimestamp", dead.Attributes["SentTimestamp"], sent.Attributes["SentTimestamp"])
			}),
		sqsRule("dead-letter-fifo", "a dead letter of a FIFO queue has a new enqueue time, and its id as its deduplication id",
			sqsGuide+"Setting-up dead-letter queue retention: \"For FIFO queues, the enqueue timestamp resets\"; "+redrive, func(s sqsRun) {
				sent, dead := moved(s, ".fifo")
				s.Want("SentTimestamp is later", dead.Attributes["SentTimestamp"] > sent.Attributes["SentTimestamp"], true)
				s.Want("deduplication id", dead.Attributes["MessageDeduplicationId"], *sent.MessageId)
			}),
		sqsRule("retention", "a message past its retention is deleted, and not dead-lettered",
			sqsGuide+"Using dead-letter queues; "+sqsAPI+"CreateQueue, MessageRetentionPeriod", func(s sqsRun) {
				q, dead := s.pair("", 1, timeout, "30", "MessageRetentionPeriod", "60")
				s.send(q, "a")
				s.take(q, "a:1")
				s.Pass(75 * time.Second)
				s.take(q)
				s.take(dead)
			}),
		sqsRule("move", "a dead letter that is moved back is a new message: new id, no receives",
			redrive+": \"considered new messages with a new messageID and enqueueTime\"", func(s sqsRun) {
				q, dead := s.pair("", 1, timeout, "1")
				id := s.send(q, "a")
				s.take(q, "a:1")
				s.Pass(2 * time.Second)
				s.take(q)
				from, to := s.arn(dead), s.arn(q)
				_, err := s.sqs.StartMessageMoveTask(s.Context, &sqs.StartMessageMoveTaskInput{SourceArn: &from, DestinationArn: &to})
				s.Must(err)
				var got []types.Message
				s.Until(func() bool { got, err = s.receive(q, 1); return err != nil || len(got) > 0 })
				s.Must(err)
				for _, m := range got {
					s.Want("new id, receives", fmt.Sprint(*m.MessageId != id, " ", m.Attributes["ApproximateReceiveCount"]), "true 1")
				}
				s.Want("messages", len(got), 1)
			}),
	}
}

func fifoRules() []Rule {
	const delivery = sqsGuide + "FIFO queue delivery logic"
	return []Rule{
		sqsRule("fifo-order", "a FIFO queue returns as many messages of a group as it can, in the order of their arrival",
			delivery, func(s sqsRun) {
				q := s.queue("q.fifo", timeout, "2")
				s.send(q, "a1", "b1", "a2")
				s.take(q, "a1:1", "a2:1", "b1:1")
				s.Pass(3 * time.Second)
				s.take(q, "a1:2", "a2:2", "b1:2")
			}),
		sqsRule("fifo-blocked", "a group is blocked while its message is in flight, and other groups go on",
			delivery+": until \"the currently received messages are deleted, or they become visible again\"", func(s sqsRun) {
				q := s.queue("q.fifo", timeout, "60")
				s.send(q, "a1", "b1", "a2")
				first := s.take(q, "a1:1")[0]
				s.take(q, "b1:1")
				s.take(q)
				s.Must(s.remove(q, first))
				s.take(q, "a2:1")
			}),
		sqsRule("fifo-behind", "a message in flight blocks those after it in its group, and not one before it that is visible again",
			localStack+"test_fifo_group_visibility_extends_with_change_message_visibility", func(s sqsRun) {
				q := s.queue("q.fifo", timeout, "60")
				s.send(q, "a1", "a2", "a3")
				all := s.take(q, "a1:1", "a2:1", "a3:1")
				s.Must(s.hide(q, all[2], 0))
				s.take(q)
				s.Must(s.hide(q, all[0], 0))
				s.take(q, "a1:2")
			}),
		sqsRule("fifo-duplicate", "a message with the deduplication id of another, up to 5 minutes later, is accepted and not delivered",
			sqsAPI+"SendMessage, MessageDeduplicationId: \"even after the message is received and deleted\"", func(s sqsRun) {
				q := s.queue("q.fifo")
				id := s.send(q, "a")
				s.Must(s.remove(q, s.take(q, "a:1")[0]))
				s.Want("the same id", s.send(q, "a") == id, true)
				s.take(q)
				s.Pass(5*time.Minute + 5*time.Second)
				s.Want("later, the same id", s.send(q, "a") == id, false)
				s.take(q, "a:1")
			}),
		sqsRule("fifo-content", "a FIFO queue with content-based deduplication takes the body in place of an id, in every group",
			localStack+"test_fifo_deduplication_not_on_message_group_id", func(s sqsRun) {
				q := s.queue("q.fifo", "ContentBasedDeduplication", "true")
				for _, group := range []string{"a", "b"} {
					_, err := s.try(q, "same", func(in *sqs.SendMessageInput) { in.MessageGroupId = &group })
					s.Must(err)
				}
				s.take(q, "same:1")
				s.take(q)
			}),
		sqsRule("fifo-ids", "a message to a FIFO queue without a group, or without a deduplication id, is refused",
			localStack+"test_posting_to_fifo_requires_deduplicationid_group_id", func(s sqsRun) {
				q := s.queue("q.fifo")
				_, err := s.try(q, "a", func(in *sqs.SendMessageInput) { in.MessageDeduplicationId = aws.String("x") })
				s.refused("no group", err, "MissingParameter")
				_, err = s.try(q, "a", func(in *sqs.SendMessageInput) { in.MessageGroupId = aws.String("g") })
				s.refused("no deduplication id", err, invalidValue)
			}),
		sqsRule("fifo-late", "on a FIFO queue a handle cannot delete after the visibility timeout",
			sqsAPI+"ReceiveMessage; "+localStack+"test_fifo_delete_after_visibility_timeout", func(s sqsRun) {
				q := s.queue("q.fifo", timeout, "1")
				s.send(q, "a")
				m := s.take(q, "a:1")[0]
				s.Pass(2 * time.Second)
				s.refused("delete", s.remove(q, m), invalidValue)
			}),
		sqsRule("fifo-batch", "a batch to a FIFO queue is refused whole if one entry has no group",
			localStack+"test_send_batch_missing_message_group_id_for_fifo_queue", func(s sqsRun) {
				q := s.queue("q.fifo")
				ok := types.SendMessageBatchRequestEntry{MessageGroupId: aws.String("g"), MessageDeduplicationId: aws.String("x")}
				_, err := s.batch(q, entry("0", "a", ok), entry("1", "b", types.SendMessageBatchRequestEntry{MessageDeduplicationId: aws.String("y")}))
				s.refused("batch", err, invalidValue)
				s.take(q)
			}),
	}
}

// entry gives an entry of a batch an id and a body.
func entry(id, body string, e types.SendMessageBatchRequestEntry) types.SendMessageBatchRequestEntry {
	e.Id, e.MessageBody = &id, &body
	return e
}

// entries returns entries of a batch with these bodies.
func entries(bodies ...string) (all []types.SendMessageBatchRequestEntry) {
	for i, body := range bodies {
		all = append(all, entry(fmt.Sprint(i), body, types.SendMessageBatchRequestEntry{}))
	}
	return all
}

func (s sqsRun) batch(queue string, all ...types.SendMessageBatchRequestEntry) (*sqs.SendMessageBatchOutput, error) {
	return s.sqs.SendMessageBatch(s.Context, &sqs.SendMessageBatchInput{QueueUrl: &queue, Entries: all})
}

const mebibyte = 1 << 20

func batchRules() []Rule {
	const page = sqsAPI + "SendMessageBatch"
	refuse := func(id, says, code string, all []types.SendMessageBatchRequestEntry) Rule {
		return sqsRule(id, says, page+", Errors", func(s sqsRun) {
			_, err := s.batch(s.queue("q"), all...)
			s.refused("batch", err, code)
		})
	}
	same := types.SendMessageBatchRequestEntry{}
	half := strings.Repeat("a", mebibyte/2)
	return []Rule{
		refuse("batch-empty", "a batch without entries is refused", "EmptyBatchRequest", []types.SendMessageBatchRequestEntry{}),
		refuse("batch-many", "a batch of more than ten entries is refused", "TooManyEntriesInBatchRequest",
			entries(strings.Split("abcdefghijk", "")...)),
		refuse("batch-ids", "a batch with the same id twice is refused", "BatchEntryIdsNotDistinct",
			[]types.SendMessageBatchRequestEntry{entry("x", "a", same), entry("x", "b", same)}),
		refuse("batch-long", "a batch of more than 1 MiB is refused", "BatchRequestTooLong", entries(half, half, "a")),
		sqsRule("batch-part", "an invalid entry of a batch fails alone",
			page+"; "+localStack+"test_batch_send_with_invalid_char_should_succeed", func(s sqsRun) {
				q := s.queue("q")
				out, err := s.batch(q, entries("a", "\x01")...)
				s.Must(err)
				var got []string
				for _, is := range out.Successful {
					got = append(got, *is.Id+" sent")
				}
				for _, is := range out.Failed {
					got = append(got, fmt.Sprint(*is.Id, " ", *is.Code, " ", is.SenderFault))
				}
				s.Want("entries", strings.Join(got, ", "), "0 sent, 1 InvalidMessageContents true")
				s.take(q, "a:1")
			}),
	}
}

func messageRules() []Rule {
	const parts = sqsGuide + "Message attribute components"
	return []Rule{
		sqsRule("size", "a message has 1 MiB at most", sqsAPI+"SendMessage; "+localStack+"test_send_oversized_message", func(s sqsRun) {
			q := s.queue("q")
			_, err := s.try(q, strings.Repeat("a", mebibyte))
			s.Want("1 MiB", err, nil)
			_, err = s.try(q, strings.Repeat("a", mebibyte+1))
			s.refused("one byte more", err, invalidValue)
		}),
		sqsRule("size-attributes", "the attributes of a message count for its size",
			sqsGuide+"Amazon SQS message quotas", func(s sqsRun) {
				_, err := s.try(s.queue("q"), strings.Repeat("a", mebibyte-4), with("kind", "String", "x"))
				s.refused("4 bytes less, and an attribute", err, invalidValue)
			}),
		sqsRule("attributes-many", "a message has ten attributes at most",
			sqsGuide+"Amazon SQS message quotas", func(s sqsRun) {
				var eleven []func(*sqs.SendMessageInput)
				for i := range 11 {
					eleven = append(eleven, with(fmt.Sprint("a", i), "String", "x"))
				}
				q := s.queue("q")
				_, err := s.try(q, "a", eleven[1:]...)
				s.Want("ten", err, nil)
				_, err = s.try(q, "a", eleven...)
				s.refused("eleven", err, invalidValue)
			}),
		sqsRule("attributes-empty", "an attribute without a value is refused",
			parts+"; "+localStack+"test_send_message_with_empty_string_attribute", func(s sqsRun) {
				_, err := s.try(s.queue("q"), "a", with("kind", "String", ""))
				s.refused("send", err, invalidValue)
			}),
		sqsRule("characters", "a body with a control character is refused",
			sqsAPI+"SendMessage: #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF", func(s sqsRun) {
				q := s.queue("q")
				_, err := s.try(q, "a\x01")
				s.refused("send", err, "InvalidMessageContents")
				_, err = s.try(q, "\t\r\n\U0001F600")
				s.Want("tab and line", err, nil)
			}),
		sqsRule("characters-attribute", "an attribute with a control character is an invalid value",
			localStack+"test_invalid_string_attributes_cause_invalid_parameter_value_error", func(s sqsRun) {
				_, err := s.try(s.queue("q"), "a", with("kind", "String", "a\x08"))
				s.refused("send", err, invalidValue)
			}),
		sqsRule("md5", "a send returns the digests of the body and of the attributes, by their names",
			sqsGuide+"Calculating the MD5 message digest for message attributes", func(s sqsRun) {
				out, err := s.try(s.queue("q"), "body", with("attribName1", "String", "attribValue 1"),
					with("customNumberTypeAttrib", "Number.float", "4563442423554324324264524243.32543234"),
					func(in *sqs.SendMessageInput) {
						in.MessageAttributes["binaryAttribute"] = types.MessageAttributeValue{
							DataType: aws.String("Binary"), BinaryValue: []byte("Hello binary world!"),
						}
					})
				s.Must(err)
				s.Want("body", aws.ToString(out.MD5OfMessageBody), "841a2d689ad86bd1611447453c22c6fc")
				s.Want("attributes", aws.ToString(out.MD5OfMessageAttributes), "c932db14a896c663f83c260297d594ff")
			}),
		sqsRule("requested", "a receive returns the attributes that it requests, by name or by prefix, and their digest",
			sqsAPI+"ReceiveMessage, MessageAttributeNames; "+localStack+"test_receive_message_message_attribute_names_filters", func(s sqsRun) {
				q := s.queue("q", timeout, "0")
				_, err := s.try(q, "a", with("attribName1", "String", "attribValue 1"), with("other", "String", "x"))
				s.Must(err)
				for request, want := range map[string]string{
					"none": "map[] ", "attribName1": "map[attribName1:attribValue 1] 19e27d4e946b072f3f58da80d94fd778",
					"attrib.*": "map[attribName1:attribValue 1] 19e27d4e946b072f3f58da80d94fd778",
				} {
					got, err := s.receive(q, 1, func(in *sqs.ReceiveMessageInput) {
						in.MessageAttributeNames, in.MessageSystemAttributeNames = []string{request}, nil
					})
					s.Must(err)
					s.Want(request, described(got), want)
				}
			}),
	}
}

// described returns the attributes of messages, and their digests.
func described(all []types.Message) string {
	var text []string
	for _, m := range all {
		values := maps.Clone(m.Attributes)
		for name, a := range m.MessageAttributes {
			if values == nil {
				values = map[string]string{}
			}
			values[name] = aws.ToString(a.StringValue)
		}
		text = append(text, fmt.Sprint(values, " ", aws.ToString(m.MD5OfMessageAttributes)))
	}
	return strings.Join(text, ", ")
}

func pollRules() []Rule {
	limit := func(id, says, test string, change func(*sqs.ReceiveMessageInput)) Rule {
		return sqsRule(id, says, sqsAPI+"ReceiveMessage; "+localStack+test, func(s sqsRun) {
			_, err := s.receive(s.queue("q"), 1, change)
			s.refused("one more", err, invalidValue)
		})
	}
	return []Rule{
		sqsRule("poll", "a long poll returns as soon as a message is visible",
			sqsGuide+"Amazon SQS short and long polling", func(s sqsRun) {
				q := s.queue("q")
				got := s.poll(q)
				s.send(q, "a")
				s.Want("messages", <-got, 1)
			}),
		limit("poll-limit", "a long poll waits for 20 seconds at most", "test_send_receive_wait_time_seconds",
			func(in *sqs.ReceiveMessageInput) { in.WaitTimeSeconds = 21 }),
		limit("receive-limit", "a receive returns ten messages at most", "test_send_receive_max_number_of_messages",
			func(in *sqs.ReceiveMessageInput) { in.MaxNumberOfMessages = 11 }),
		sqsRule("queue-attributes", "a request for the attributes of a queue that names none returns none",
			"github.com/aws/aws-cli/issues/17", func(s sqsRun) {
				s.Want("attributes", len(s.attributes(s.queue("q"))), 0)
			}),
		sqsRule("counts", "the numbers of visible and hidden messages become those of the queue",
			sqsAPI+"GetQueueAttributes; "+localStack+"test_fifo_approximate_number_of_messages_not_visible", func(s sqsRun) {
				q := s.queue("q.fifo", timeout, "600")
				s.send(q, "a1", "a2", "b1")
				s.take(q, "a1:1")
				const visible, inFlight = "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"
				got := ""
				s.Until(func() bool {
					is := s.attributes(q, visible, inFlight)
					got = is[visible] + " " + is[inFlight]
					return got == "2 1"
				})
				s.Want("visible, in flight", got, "2 1")
			}),
		sqsRule("queue-missing", "a queue that does not exist is an error of its own",
			localStack+"test_non_existent_queue", func(s sqsRun) {
				_, err := s.try(s.queue("q")+"2", "a")
				s.refused("send", err, "NonExistentQueue")
			}),
		sqsRule("queue-name", "the name of a queue does in place of its URL",
			localStack+"test_posting_to_queue_via_queue_name", func(s sqsRun) {
				q := s.queue("q")
				s.send(q[strings.LastIndex(q, "/")+1:], "a")
				s.take(q, "a:1")
			}),
	}
}

// poll begins a long poll of 20 seconds, and returns when the service has it: a double has
// read its clock.
func (s sqsRun) poll(queue string) <-chan int {
	got, looks := make(chan int, 1), func() int64 { return 0 }
	if s.clock != nil {
		looks = s.clock.looks.Load
	}
	before := looks()
	go func() {
		all, _ := s.receive(queue, 1, func(in *sqs.ReceiveMessageInput) { in.WaitTimeSeconds = 20 })
		got <- len(all)
	}()
	if s.clock == nil {
		s.Pass(2 * time.Second)
	}
	for s.clock != nil && looks() == before {
		time.Sleep(time.Millisecond)
	}
	return got
}
