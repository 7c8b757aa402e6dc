package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// sqsRun calls SQS. Its client leaves digests to the checks.
type sqsRun struct {
	*Run

	sqs *sqs.Client
}

func sqsRule(id, says, source string, check func(sqsRun)) Rule {
	return Rule{ID: "sqs/" + id, Says: says, Source: source, Check: func(r *Run) { check(newSQSRun(r)) }}
}

func newSQSRun(r *Run) sqsRun {
	return sqsRun{r, sqs.NewFromConfig(r.Config, func(o *sqs.Options) { o.DisableMessageChecksumValidation = true })}
}

// queue creates a queue with attributes in pairs of name and value, and returns its URL.
// A FIFO queue has a name that ends in .fifo.
func (s sqsRun) queue(name string, attributes ...string) (url string) {
	in := &sqs.CreateQueueInput{
		QueueName: aws.String(s.Name(name)), Attributes: map[string]string{}, Tags: map[string]string{"orderonce": "conform"},
	}
	for pair := range slices.Chunk(attributes, 2) {
		in.Attributes[pair[0]] = pair[1]
	}
	if isFIFO(name) {
		in.Attributes["FifoQueue"] = "true"
	}
	out, err := s.sqs.CreateQueue(context.WithoutCancel(s.Context), in) // with its URL, so that it can be removed
	s.Must(err)
	s.Defer(func(ctx context.Context) error {
		_, err := s.sqs.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: out.QueueUrl})
		return err
	})
	s.Pass(time.Second) // CreateQueue: "you must wait at least one second after the queue is created"
	return *out.QueueUrl
}

func isFIFO(queue string) bool { return strings.HasSuffix(queue, ".fifo") }

func (s sqsRun) pair(name string, maxReceives int, attributes ...string) (queue, dead string) {
	dead = s.queue("dead" + name)
	policy, _ := json.Marshal(map[string]any{"deadLetterTargetArn": s.arn(dead), "maxReceiveCount": maxReceives})
	return s.queue(name, append(attributes, "RedrivePolicy", string(policy))...), dead
}

func (s sqsRun) arn(queue string) string { return s.attributes(queue, "QueueArn")["QueueArn"] }

func (s sqsRun) attributes(queue string, names ...types.QueueAttributeName) map[string]string {
	out, err := s.sqs.GetQueueAttributes(s.Context, &sqs.GetQueueAttributesInput{QueueUrl: &queue, AttributeNames: names})
	s.Must(err)
	return out.Attributes
}

// send sends a message. On a FIFO queue the first letter of the body is its group, and
// the body its deduplication id, unless change removes them.
func (s sqsRun) send(queue, body string, change ...func(*sqs.SendMessageInput)) error {
	in := &sqs.SendMessageInput{QueueUrl: &queue, MessageBody: &body}
	if isFIFO(queue) {
		in.MessageGroupId, in.MessageDeduplicationId = aws.String(body[:1]), &body
	}
	for _, f := range change {
		f(in)
	}
	_, err := s.sqs.SendMessage(s.Context, in)
	return err
}

// receive receives up to n messages with all their attributes. It waits for what may
// come, because a real queue is spread over servers, and a double's clock stands still.
func (s sqsRun) receive(queue string, n int32, change ...func(*sqs.ReceiveMessageInput)) ([]types.Message, error) {
	in := &sqs.ReceiveMessageInput{
		QueueUrl: &queue, MaxNumberOfMessages: n, MessageAttributeNames: []string{"All"},
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"},
	}
	if !s.double() {
		in.WaitTimeSeconds = 3
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

// take wants these messages in this order and no others, each as its body and receive
// count. It ends the check if others come.
func (s sqsRun) take(queue string, want ...string) (all []types.Message) {
	var got []string
	for more := 1; more > 0 && len(got) < max(1, len(want)); {
		part, err := s.receive(queue, int32(max(1, len(want)-len(got)))) //nolint:gosec // G115: at most 10
		s.Must(err)
		for _, m := range part {
			got = append(got, *m.Body+":"+m.Attributes["ApproximateReceiveCount"])
		}
		more, all = len(part), append(all, part...)
	}
	_, name, _ := strings.Cut(queue, s.Prefix)
	if s.Want("messages of "+name, strings.Join(got, " "), strings.Join(want, " ")); len(got) != len(want) {
		s.Stop()
	}
	return all
}

// refused wants a call to fail with a code, or to succeed if the code is empty.
func (s sqsRun) refused(what string, err error, code string) {
	s.Want(what, strings.TrimPrefix(s.did(err), "AWS.SimpleQueueService."), cmp.Or(code, ok))
}

// Sources and codes.
const (
	sqsAPI     = "SQS API reference, "
	sqsGuide   = "SQS developer guide, "
	localStack = "LocalStack's suite, recorded against AWS, "

	invalidValue = "InvalidParameterValue"
	timeout      = "VisibilityTimeout"
)

func sqsRules() []Rule {
	return slices.Concat(flowRules(), deadLetterRules(), sendRules(), batchRules(), receiveRules())
}

// flow returns a rule that takes steps with a queue and its visibility timeout:
//
//	send BODY          see sqsRun.send
//	take BODY:COUNT    receives these messages, and no others
//	dead BODY:COUNT    the same, from the dead-letter queue
//	delete N, hide N S with the handle of the Nth message that was taken, for S seconds
//	pass S             seconds
//
// The code of a refusal follows a colon.
func flow(id, says, source, name, visibility string, steps ...string) Rule {
	return sqsRule(id, says, source, func(s sqsRun) {
		q, dead := s.pair(name, 2, timeout, visibility, "MessageRetentionPeriod", "60")
		var all []types.Message
		for _, text := range steps {
			step, code, _ := strings.Cut(text, ": ")
			word := strings.Fields(step)
			number := func(i int) int32 {
				n, err := strconv.ParseInt(word[i], 10, 32)
				s.Must(err)
				return int32(n)
			}
			var err error
			switch word[0] {
			case "send":
				err = s.send(q, word[1])
			case "take":
				all = append(all, s.take(q, word[1:]...)...)
			case "dead":
				s.take(dead, word[1:]...)
			case "pass":
				s.Pass(time.Duration(number(1)) * time.Second)
			case "delete":
				in := &sqs.DeleteMessageInput{QueueUrl: &q, ReceiptHandle: all[number(1)].ReceiptHandle}
				_, err = s.sqs.DeleteMessage(s.Context, in)
			case "hide":
				_, err = s.sqs.ChangeMessageVisibility(s.Context, &sqs.ChangeMessageVisibilityInput{
					QueueUrl: &q, ReceiptHandle: all[number(1)].ReceiptHandle, VisibilityTimeout: number(2),
				})
			}
			s.refused(text, err, code)
		}
	})
}

func flowRules() []Rule {
	const standard, fifo, delivery = "q", "q.fifo", sqsGuide + "FIFO queue delivery logic"
	return []Rule{
		flow("visibility", "a received message is hidden for the visibility timeout, and then comes again",
			sqsGuide+"Amazon SQS visibility timeout", standard, "8",
			"send a", "take a:1", "take", "pass 8", "take a:2"),
		flow("change-zero", "a visibility timeout changed to zero makes the message visible at once",
			sqsGuide+"Terminating visibility timeout", standard, "30", "send a", "take a:1", "hide 0 0", "take a:2"),
		flow("change-again", "a changed visibility timeout starts with the call, and is of this receive alone",
			sqsAPI+"ChangeMessageVisibility", standard, "8",
			"send a", "take a:1", "pass 4", "hide 0 9", "pass 5", "take", "pass 8", "take a:2"),
		flow("change-limit", "a message is hidden for 12 hours after its receive at most",
			sqsAPI+"ChangeMessageVisibility", standard, "30",
			"send a", "take a:1", "pass 5", "hide 0 43200: "+invalidValue, "hide 0 43000"),
		flow("change-visible", "a message that is visible again stays so if its timeout is changed",
			localStack+"test_change_message_visibility_after_visibility_timeout_expiration", standard, "1",
			"send a", "take a:1", "pass 2", "hide 0 3600", "take a:2"),
		flow("change-deleted", "the visibility timeout of a deleted message cannot be changed",
			localStack+"test_change_visibility_on_deleted_message_raises_invalid_parameter_value", standard, "30",
			"send a", "take a:1", "delete 0", "hide 0 60: "+invalidValue),
		flow("delete", "a deleted message does not come again, and can be deleted again",
			localStack+"test_delete_message_with_deleted_receipt_handle", standard, "1",
			"send a", "take a:1", "delete 0", "delete 0", "pass 2", "take"),
		flow("delete-late", "on a standard queue the latest handle deletes a message that is visible again",
			localStack+"test_delete_after_visibility_timeout", standard, "1",
			"send a", "take a:1", "pass 2", "delete 0", "take"),
		flow("delete-old", "on a standard queue a delete with an older handle succeeds, whether or not it deletes",
			sqsAPI+`DeleteMessage: "the request will succeed, but the message might not be deleted"`, standard, "1",
			"send a", "take a:1", "pass 2", "take a:2", "delete 0"),
		flow("retention", "a message past its retention is deleted, and not dead-lettered",
			sqsAPI+"CreateQueue, MessageRetentionPeriod", standard, "1",
			"send a", "take a:1", "pass 2", "take a:2", "pass 75", "take", "dead"),
		flow("fifo-order", "a FIFO queue returns as many messages of a group as it can, in the order of their arrival",
			delivery, fifo, "50",
			"send a1", "send b1", "send a2", "take a1:1 a2:1", "take b1:1"),
		flow("fifo-blocked", "a message in flight blocks its group, and other groups go on",
			delivery+`: until they "are deleted, or they become visible again"`, fifo, "50",
			"send a1", "send b1", "send a2", "take a1:1", "take b1:1", "take", "delete 0", "take a2:1"),
		flow("fifo-behind", "a message in flight does not block one before it in its group that is visible again",
			localStack+"test_fifo_group_visibility_extends_with_change_message_visibility", fifo, "50",
			"send a1", "send a2", "send a3", "take a1:1 a2:1 a3:1", "hide 2 0", "take", "hide 0 0", "take a1:2"),
		flow("fifo-duplicate", "a message with the deduplication id of one of the last 5 minutes is accepted, and not delivered",
			sqsAPI+`SendMessage: "even after the message is received and deleted"`, fifo, "50",
			"send a", "take a:1", "delete 0", "send a", "take", "pass 305", "send a", "take a:1"),
		flow("fifo-late", "on a FIFO queue a handle does not delete after the visibility timeout",
			localStack+"test_fifo_delete_after_visibility_timeout", fifo, "1",
			"send a", "take a:1", "pass 2", "delete 0: "+invalidValue),
	}
}

func deadLetterRules() []Rule {
	const page = sqsGuide + "Learn how to configure a dead-letter queue redrive"
	died := func(s sqsRun, name string) (q, dead string, first, last types.Message) {
		q, dead = s.pair(name, 2, timeout, "1")
		err := s.send(q, "a", with(1, "x"))
		s.Must(err)
		first = s.take(q, "a:1")[0]
		s.Pass(2 * time.Second)
		last = s.take(q, "a:2")[0]
		s.Pass(2 * time.Second)
		s.take(q)
		return q, dead, first, last
	}
	return []Rule{
		sqsRule("first-receive", "the time of the first receive stays when a message comes again",
			sqsAPI+"ReceiveMessage, ApproximateFirstReceiveTimestamp", func(s sqsRun) {
				const name = "ApproximateFirstReceiveTimestamp"
				_, _, first, last := died(s, "q")
				s.Want(name, last.Attributes[name], first.Attributes[name])
			}),
		sqsRule("dead-letter", "a message received maxReceiveCount times moves to the dead-letter queue as it is, with its times",
			sqsGuide+`Setting-up dead-letter queue retention: "the enqueue timestamp is unchanged"; `+
				localStack+"test_dead_letter_queue_message_attributes", func(s sqsRun) {
				_, dead, first, _ := died(s, "q")
				letter := s.take(dead, "a:3")[0]
				s.Want("id", *letter.MessageId, *first.MessageId)
				s.Want("SentTimestamp", letter.Attributes["SentTimestamp"], first.Attributes["SentTimestamp"])
				s.Want("attribute", aws.ToString(letter.MessageAttributes["a0"].StringValue), "x")
				_, source, _ := strings.Cut(letter.Attributes["DeadLetterQueueSourceArn"], s.Prefix)
				s.Want("source", source, "q")
			}),
		sqsRule("dead-letter-fifo", "a dead letter of a FIFO queue has a new enqueue time, and its id as its deduplication id",
			sqsGuide+`Setting-up dead-letter queue retention: "For FIFO queues, the enqueue timestamp resets"; `+page, func(s sqsRun) {
				_, dead, first, _ := died(s, "q.fifo")
				letter := s.take(dead, "a:3")[0]
				s.Want("SentTimestamp is later", letter.Attributes["SentTimestamp"] > first.Attributes["SentTimestamp"], true)
				s.Want("deduplication id", letter.Attributes["MessageDeduplicationId"], *first.MessageId)
			}),
		sqsRule("move", "a dead letter that is moved back is a new message, without receives",
			page+`: "considered new messages with a new messageID and enqueueTime"`, func(s sqsRun) {
				q, dead, first, _ := died(s, "q")
				_, err := s.sqs.StartMessageMoveTask(s.Context, &sqs.StartMessageMoveTaskInput{
					SourceArn: aws.String(s.arn(dead)), DestinationArn: aws.String(s.arn(q)),
				})
				s.Must(err)
				var got []types.Message
				s.Until(func() bool { got, err = s.receive(q, 1); return err != nil || len(got) > 0 })
				s.Must(err)
				for _, m := range got {
					s.Want("receives, id", m.Attributes["ApproximateReceiveCount"]+fmt.Sprint(*m.MessageId != *first.MessageId), "1true")
				}
				s.Want("messages", len(got), 1)
			}),
	}
}

func with(n int, text string) func(*sqs.SendMessageInput) {
	return func(in *sqs.SendMessageInput) {
		in.MessageAttributes = map[string]types.MessageAttributeValue{}
		for i := range n {
			in.MessageAttributes[fmt.Sprint("a", i)] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &text}
		}
	}
}

// sending is a message, and the code of its refusal.
type sending struct {
	body, code string
	change     func(*sqs.SendMessageInput)
}

func sends(id, says, source, name string, all ...sending) Rule {
	return sqsRule(id, says, source, func(s sqsRun) {
		q := s.queue(name)
		for i, m := range all {
			err := s.send(q, m.body, m.change)
			s.refused(fmt.Sprint("message ", i+1), err, m.code)
		}
	})
}

const mebibyte = 1 << 20

func sendRules() []Rule {
	body := strings.Repeat("a", mebibyte)
	return []Rule{
		sends("size", "a message has 1 MiB at most, its attributes included", localStack+"test_send_oversized_message", "q",
			sending{body, "", with(0, "")}, sending{body + "a", invalidValue, with(0, "")},
			sending{body[4:], invalidValue, with(1, "x")}),
		sends("attributes", "a message has ten attributes at most, which are not empty",
			sqsGuide+"Message attribute components; Amazon SQS message quotas", "q",
			sending{"a", "", with(10, "x")}, sending{"a", invalidValue, with(11, "x")}, sending{"a", invalidValue, with(1, "")}),
		sends("characters", "a body with a control character has invalid contents, and an attribute with one an invalid value",
			sqsAPI+"SendMessage; "+localStack+"test_invalid_string_attributes_cause_invalid_parameter_value_error", "q",
			sending{"\t\r\n\U0001F600", "", with(0, "")}, sending{"\x01", "InvalidMessageContents", with(0, "")},
			sending{"a", invalidValue, with(1, "\x08")}),
		sends("fifo-ids", "a message to a FIFO queue without a group, or without a deduplication id, is refused",
			localStack+"test_posting_to_fifo_requires_deduplicationid_group_id", "q.fifo",
			sending{"a", "MissingParameter", func(in *sqs.SendMessageInput) { in.MessageGroupId = nil }},
			sending{"a", invalidValue, func(in *sqs.SendMessageInput) { in.MessageDeduplicationId = nil }}),
		sqsRule("queue", "a queue that does not exist is an error of its own, and its name does in place of its URL",
			localStack+"test_non_existent_queue, test_posting_to_queue_via_queue_name", func(s sqsRun) {
				q := s.queue("q")
				err := s.send(q+"2", "a")
				s.refused("another queue", err, "NonExistentQueue")
				err = s.send(q[strings.LastIndex(q, "/")+1:], "a")
				s.Must(err)
				s.take(q, "a:1")
			}),
	}
}

// batch sends bodies. Those of a FIFO queue have their first letter as group, if it is
// not a minus.
func (s sqsRun) batch(queue string, ids, bodies []string) (*sqs.SendMessageBatchOutput, error) {
	all := []types.SendMessageBatchRequestEntry{}
	for i, body := range bodies {
		e := types.SendMessageBatchRequestEntry{Id: &ids[i], MessageBody: &body}
		if isFIFO(queue) {
			e.MessageDeduplicationId = &ids[i]
		}
		if isFIFO(queue) && body[:1] != "-" {
			e.MessageGroupId = aws.String(body[:1])
		}
		all = append(all, e)
	}
	return s.sqs.SendMessageBatch(s.Context, &sqs.SendMessageBatchInput{QueueUrl: &queue, Entries: all})
}

func batchRules() []Rule {
	numbers := strings.Split("0 1 2 3 4 5 6 7 8 9 10", " ")
	refuses := func(id, says, code, source, name string, ids []string, bodies ...string) Rule {
		return sqsRule(id, says, source, func(s sqsRun) {
			q := s.queue(name)
			_, err := s.batch(q, ids, bodies)
			s.refused("batch", err, code)
			s.take(q)
		})
	}
	const page = sqsAPI + "SendMessageBatch, Errors"
	return []Rule{
		refuses("batch-empty", "a batch without entries is refused", "EmptyBatchRequest", page, "q", nil),
		refuses("batch-many", "a batch of more than ten entries is refused", "TooManyEntriesInBatchRequest", page, "q", numbers, numbers...),
		refuses("batch-ids", "a batch with an id twice is refused", "BatchEntryIdsNotDistinct", page, "q", []string{"0", "0"}, "a", "b"),
		refuses("batch-long", "a batch of more than 1 MiB is refused", "BatchRequestTooLong", page, "q", numbers,
			strings.Repeat("a", mebibyte), "a"),
		refuses("fifo-batch", "a batch to a FIFO queue is refused whole if one entry has no group", invalidValue,
			localStack+"test_send_batch_missing_message_group_id_for_fifo_queue", "q.fifo", numbers, "a", "-"),
		sqsRule("batch-part", "an invalid entry of a batch fails alone",
			localStack+"test_batch_send_with_invalid_char_should_succeed", func(s sqsRun) {
				q := s.queue("q")
				out, err := s.batch(q, numbers, []string{"a", "\x01"})
				s.Must(err)
				for _, is := range out.Failed {
					s.Want("failed", fmt.Sprint(*is.Id, *is.Code, is.SenderFault), "1InvalidMessageContentstrue")
				}
				s.Want("sent, failed", fmt.Sprint(len(out.Successful), len(out.Failed)), "1 1")
				s.take(q, "a:1")
			}),
	}
}

func receiveRules() []Rule {
	limit := func(id, says, test string, change func(*sqs.ReceiveMessageInput)) Rule {
		return sqsRule(id, says, localStack+test, func(s sqsRun) {
			_, err := s.receive(s.queue("q"), 1, change)
			s.refused("one more", err, invalidValue)
		})
	}
	return []Rule{
		sqsRule("requested", "attributes come if they are requested, by name or prefix; with the digest of these",
			localStack+"test_receive_message_message_attribute_names_filters", func(s sqsRun) {
				q := s.queue("q", timeout, "0")
				err := s.send(q, "a", with(11, "x"), func(in *sqs.SendMessageInput) { delete(in.MessageAttributes, "a0") })
				s.Must(err)
				for request, want := range map[string]string{
					"none": "0 ", "a1": "1 135690d995c1e54cff900acbedead34e", "a1.*": "2 3612ad96f3d155aad3c338a7cba0b355",
				} {
					got, err := s.receive(q, 1, func(in *sqs.ReceiveMessageInput) {
						in.MessageAttributeNames, in.MessageSystemAttributeNames = []string{request}, nil
					})
					s.Must(err)
					for _, m := range got {
						s.Want(request, fmt.Sprint(len(m.Attributes)+len(m.MessageAttributes), " ", aws.ToString(m.MD5OfMessageAttributes)), want)
						s.Want("body", *m.MD5OfBody, "0cc175b9c0f1b6a831c399e269772661")
					}
				}
			}),
		sqsRule("poll", "a long poll returns as soon as a message is visible",
			sqsGuide+"Amazon SQS short and long polling", func(s sqsRun) {
				q := s.queue("q")
				got := s.poll(q)
				err := s.send(q, "a")
				s.Must(err)
				s.Want("messages", <-got, 1)
			}),
		limit("poll-limit", "a long poll waits for 20 seconds at most", "test_send_receive_wait_time_seconds",
			func(in *sqs.ReceiveMessageInput) { in.WaitTimeSeconds = 21 }),
		limit("receive-limit", "a receive returns ten messages at most", "test_send_receive_max_number_of_messages",
			func(in *sqs.ReceiveMessageInput) { in.MaxNumberOfMessages = 11 }),
		sqsRule("queue-attributes", "a request for the attributes of a queue that names none returns none",
			"github.com/aws/aws-cli/issues/17", func(s sqsRun) { s.Want("attributes", len(s.attributes(s.queue("q"))), 0) }),
		sqsRule("counts", "the numbers of visible and hidden messages become those of the queue",
			localStack+"test_approximate_number_of_messages_not_visible", func(s sqsRun) {
				q, got := s.queue("q", timeout, "600"), ""
				_, err := s.batch(q, []string{"0", "1"}, []string{"a", "a"})
				s.Must(err)
				s.take(q, "a:1")
				s.Until(func() bool {
					const visible, inFlight = "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"
					is := s.attributes(q, visible, inFlight)
					got = is[visible] + " " + is[inFlight]
					return got == "1 1"
				})
				s.Want("visible, in flight", got, "1 1")
			}),
		sqsRule("product", "an order is received as orderonce sent it, and comes back when orderonce says, from both kinds of queue",
			ours, sqsProduct),
	}
}

// poll begins a long poll, and returns when the service has it: a double read its clock.
func (s sqsRun) poll(queue string) <-chan int {
	got, before := make(chan int, 1), int64(0)
	if s.double() {
		before = s.clock.looks.Load()
	}
	go func() {
		all, _ := s.receive(queue, 1, func(in *sqs.ReceiveMessageInput) { in.WaitTimeSeconds = 20 })
		got <- len(all)
	}()
	if !s.double() {
		s.Pass(2 * time.Second)
	}
	for s.double() && s.clock.looks.Load() == before {
		time.Sleep(time.Millisecond)
	}
	return got
}
