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

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"orderonce/adapters/sqs"
)

type post struct {
	File         string `arg:"" default:"-" help:"Message bodies, one per line; - is standard input. Lines that start with # are skipped."`
	AllowInvalid bool   `help:"Post invalid orders too. The function parks them as invalid_order."`
}

// message is a line of the file to post.
type message struct {
	line int
	body string
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
	posted, err := newQueue(cfg, c.Queue).sendAll(ctx, p.name(), messages)
	if err != nil {
		return fmt.Errorf("%d of %d messages posted to %s\n%w", posted, len(messages), c.Queue, err)
	}
	fmt.Fprintf(sh.out, "messages posted: %d\n", posted)
	return nil
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
	var messages []message
	lines, n := bufio.NewScanner(in), 0
	lines.Buffer(nil, maxMessage)
	for ; lines.Scan(); n++ {
		if body := strings.TrimSpace(lines.Text()); body != "" && !strings.HasPrefix(body, "#") {
			messages = append(messages, message{n + 1, body})
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
	decoder := sqs.NewDecoder()
	var invalid []string
	for _, m := range messages {
		if _, err := decoder.DecodeJob(m.body); err != nil {
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

// sendAll returns how many messages the queue is known to hold. The error names the line
// of each of the others. It stops at a call that fails as a whole, because the next would
// as well.
func (q queue) sendAll(ctx context.Context, file string, messages []message) (posted int, err error) {
	var refused []error
	for from := 0; from < len(messages); from += perCall {
		chunk := messages[from:min(from+perCall, len(messages))]
		failed, err := q.sendOnce(ctx, file, chunk)
		if err != nil { // the response may be lost, and posting an order twice is harmless
			whole := fmt.Errorf("%s:%d to %d: may be posted, the lines after them are not; post all again: %w",
				file, chunk[0].line, chunk[len(chunk)-1].line, err)
			return posted, errors.Join(append(refused, whole)...)
		}
		posted += len(chunk) - len(failed)
		refused = append(refused, failed...)
	}
	return posted, errors.Join(refused...)
}

// sendOnce makes one call. The id of an entry is its line.
func (q queue) sendOnce(ctx context.Context, file string, messages []message) (failed []error, err error) {
	entries := make([]types.SendMessageBatchRequestEntry, len(messages))
	for i, m := range messages {
		entries[i] = types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(m.line)), MessageBody: &m.body}
	}
	out, err := q.client.SendMessageBatch(ctx, &sdk.SendMessageBatchInput{QueueUrl: &q.url, Entries: entries})
	if err != nil {
		return nil, err
	}
	for _, f := range out.Failed {
		failed = append(failed,
			fmt.Errorf("%s:%s: %s: %s", file, aws.ToString(f.Id), aws.ToString(f.Code), aws.ToString(f.Message)))
	}
	return failed, nil
}
