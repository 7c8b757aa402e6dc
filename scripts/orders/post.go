package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"orderonce/adapters/sqs"
	"orderonce/adapters/sqs/jobs"
)

type post struct {
	File         string            `arg:"" default:"-" help:"Message bodies, one per line, or - for standard input. # starts a comment."`
	CSV          bool              `name:"csv" help:"The file is CSV with a header: one line of an order per row."`
	Column       map[string]string `placeholder:"COLUMN=NAME" mapsep:"none" help:"With --csv: what the header calls a column. Repeatable."`
	Rate         int               `placeholder:"N" help:"At most so many messages per second."`
	AllowInvalid bool              `help:"Post invalid orders too. The function parks them as invalid_order."`
}

// Help explains the command beyond its one line.
func (post) Help() string {
	return `It posts orders and refunds, in the JSON of docs/reference/message.md, or none if one of them is
invalid. Posting an order twice is harmless: it is charged once. On a FIFO queue, each order has a
message group of its own.

A line that dead-letters discard --save wrote is posted as its message, with the time when that was
first sent: an order whose row was lost is charged again if its message looks young.

With --csv, the columns are ` + strings.Join(csvColumns(), ", ") + `.
Rows with the same orderId, one after the other, are the lines of one order.

Examples:
  orders post orders.jsonl --rate 50
  orders post --csv --column orderId="Order no." --column sku=Article orders.csv`
}

// message is a line of the file to post.
type message struct {
	line      int
	body      string
	firstSent time.Time // of a saved message; zero otherwise
}

// newMessage returns the message of a line: a body, or a message as save writes it.
func newMessage(line int, text string) message {
	var s saved
	if err := json.Unmarshal([]byte(text), &s); err == nil && s.MessageID != "" && s.Body != "" {
		return message{line, s.Body, s.FirstSent}
	}
	return message{line: line, body: text}
}

// attributes returns the time when a saved message was first sent, as Park writes it.
func (m message) attributes() map[string]types.MessageAttributeValue {
	if m.firstSent.IsZero() {
		return nil
	}
	return map[string]types.MessageAttributeValue{sqs.AttrFirstSent: {
		DataType: aws.String("String"), StringValue: aws.String(m.firstSent.UTC().Format(time.RFC3339)),
	}}
}

// Run posts every line, or none if one of them is neither a valid order nor a refund.
func (p post) Run(ctx context.Context, sh shell) error {
	c, cfg, err := connect[queueConfig](ctx, sh)
	if err != nil {
		return err
	}
	messages, err := p.read(sh.in)
	if err != nil {
		return err
	}
	if !p.AllowInvalid {
		if err := validate(p.name(), messages); err != nil {
			return err
		}
	}
	batches := sending{queue: newQueue(cfg, c.Queue), file: p.name(), rate: p.Rate, progress: sh.progress}
	posted, err := batches.sendAll(ctx, messages)
	sh.progress("")
	if err != nil {
		return fmt.Errorf("%d of %d messages posted to %s\n%w", posted, len(messages), c.Queue, err)
	}
	return sh.result(fmt.Sprintf("messages posted: %d\n", posted), map[string]int{"posted": posted})
}

// name is the file's name in errors.
func (p post) name() string {
	if p.File == "-" {
		return "standard input"
	}
	return p.File
}

// maxMessage is the largest message of SQS, in bytes.
const maxMessage = 1 << 20

func (p post) read(in io.Reader) ([]message, error) {
	if p.File != "-" {
		file, err := os.Open(p.File)
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }() // it was only read
		in = file
	}
	if p.CSV {
		messages, err := readCSV(in, p.Column)
		if err != nil {
			return nil, fmt.Errorf("nothing posted: %s: %w", p.name(), err)
		}
		return messages, nil
	}
	var messages []message
	lines, n := bufio.NewScanner(in), 0
	lines.Buffer(nil, maxMessage)
	for ; lines.Scan(); n++ {
		if body := strings.TrimSpace(lines.Text()); body != "" && !strings.HasPrefix(body, "#") {
			messages = append(messages, newMessage(n+1, body))
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("%s:%d: line too long: want at most %d bytes", p.name(), n+1, maxMessage)
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", p.name(), err)
	}
	return messages, nil
}

// maxShown is how many invalid lines an error names.
const maxShown = 20

// validate returns an error that names every line that the function would park.
func validate(file string, messages []message) error {
	decoder := jobs.NewDecoder()
	var invalid []string
	for _, m := range messages {
		if _, err := decoder.Decode(m.body); err != nil {
			invalid = append(invalid, fmt.Sprintf("\n  %s:%d: %v", file, m.line, err))
		}
	}
	if len(invalid) == 0 {
		return nil
	}
	if err := checkJSONLines(file, messages); err != nil {
		return err
	}
	shown := strings.Join(invalid[:min(len(invalid), maxShown)], "")
	if more := len(invalid) - maxShown; more > 0 {
		shown += fmt.Sprintf("\n  and %d more", more)
	}
	return fmt.Errorf("nothing posted: %d of %d messages are invalid orders:%s\n"+
		"correct them, or post all with --allow-invalid: the function parks invalid orders", len(invalid), len(messages), shown)
}

// checkJSONLines returns an error for a file whose lines are not meant as messages: one
// that is JSON in another layout, and one that is not JSON.
func checkJSONLines(file string, messages []message) error {
	var all bytes.Buffer
	objects := 0
	for _, m := range messages {
		all.WriteString(m.body + "\n")
		if strings.HasPrefix(m.body, "{") {
			objects++
		}
	}
	const want = "nothing posted: %s: not JSON lines: want one order per line"
	values := 0
	decoder := json.NewDecoder(&all)
	array := strings.HasPrefix(messages[0].body, "[")
	for ; ; values++ {
		var value json.RawMessage
		if err := decoder.Decode(&value); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			values = len(messages) // it is not JSON as a whole either
			break
		}
	}
	switch {
	case array && values < len(messages) || array && objects == 0:
		return fmt.Errorf(want+", got an array: jq -c '.[]' makes lines of it", file)
	case values < len(messages):
		return fmt.Errorf(want+", got an order over several lines: jq -c . makes one line of it", file)
	case objects == 0:
		return fmt.Errorf(want+`, got no line that starts with "{"`, file)
	}
	return nil
}

// perCall is the largest number of entries of one SendMessageBatch.
const perCall = 10

// sending sends the messages of a file.
type sending struct {
	queue

	file     string
	rate     int // messages per second; 0 means no limit
	progress func(format string, args ...any)
}

// sendAll returns how many messages the queue is known to hold. The error names the line
// of each of the others. It stops at a call that fails as a whole, because the next would
// as well.
func (q sending) sendAll(ctx context.Context, messages []message) (posted int, err error) {
	var refused []error
	began := time.Now()
	for from := 0; from < len(messages); from += perCall {
		chunk := messages[from:min(from+perCall, len(messages))]
		if err := waitFor(ctx, began, from, q.rate); err != nil {
			rest := fmt.Errorf("%s:%d: not posted, nor the lines after it: %w", q.file, chunk[0].line, err)
			return posted, errors.Join(append(refused, rest)...)
		}
		q.progress("%d of %d messages", from, len(messages))
		failed, err := q.sendOnce(ctx, chunk)
		if err != nil { // the response may be lost, and posting an order twice is harmless
			whole := fmt.Errorf("%s:%d to %d: may be posted, the lines after them are not; post all again: %w",
				q.file, chunk[0].line, chunk[len(chunk)-1].line, err)
			return posted, errors.Join(append(refused, whole)...)
		}
		posted += len(chunk) - len(failed)
		refused = append(refused, failed...)
	}
	return posted, errors.Join(refused...)
}

// sendOnce makes one call. The id of an entry is its line.
func (q sending) sendOnce(ctx context.Context, messages []message) (failed []error, err error) {
	entries := make([]types.SendMessageBatchRequestEntry, len(messages))
	for i, m := range messages {
		entries[i] = types.SendMessageBatchRequestEntry{
			Id: aws.String(strconv.Itoa(m.line)), MessageBody: &m.body, MessageAttributes: m.attributes(),
		}
		if q.fifo() {
			entries[i].MessageGroupId, entries[i].MessageDeduplicationId = group(m)
		}
	}
	out, err := q.client.SendMessageBatch(ctx, &sdk.SendMessageBatchInput{QueueUrl: &q.url, Entries: entries})
	if err != nil {
		return nil, err
	}
	for _, f := range out.Failed {
		failed = append(failed,
			fmt.Errorf("%s:%s: %s: %s", q.file, aws.ToString(f.Id), aws.ToString(f.Code), aws.ToString(f.Message)))
	}
	return failed, nil
}

// group returns the message group and the deduplication id of a message on a FIFO queue:
// its order, and a hash of the body, so that SQS drops what was posted twice within five
// minutes. An invalid message has a group of its own.
func group(m message) (group, deduplication *string) {
	id := sqs.DeduplicationID(m.body)
	job, err := jobs.NewDecoder().Decode(m.body)
	if err != nil {
		return &id, &id
	}
	return aws.String(string(job.OrderID())), &id
}

// waitFor waits until n messages may have been sent since began.
func waitFor(ctx context.Context, began time.Time, n, rate int) error {
	if rate <= 0 {
		return ctx.Err()
	}
	select {
	case <-time.After(time.Until(began.Add(time.Duration(n) * time.Second / time.Duration(rate)))):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
