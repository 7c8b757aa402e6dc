package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"orderonce/adapters/lambda"
	"orderonce/adapters/sqs"
)

type post struct {
	File string `arg:"" default:"-" help:"A file of message bodies, one a line; - is standard input. Lines that start with # are skipped."`
}

// Run posts every line, also what is no order: what becomes of that is worth seeing.
func (p post) Run(ctx context.Context, sh shell) error {
	c, err := lambda.ReadEnv[queueConfig](sh.environ)
	if err != nil {
		return err
	}
	bodies, err := p.read(sh.in)
	if err != nil {
		return err
	}
	warn(sh.warnings, bodies)
	posted, err := queue{c.client(), string(c.Queue)}.send(ctx, bodies)
	if err != nil {
		return fmt.Errorf("%d of %d messages posted to %s\n%w", posted, len(bodies), c.Queue, err)
	}
	fmt.Fprintf(sh.out, "messages posted: %d\n", posted)
	return nil
}

func (p post) read(in io.Reader) ([]string, error) {
	if p.File != "-" {
		file, err := os.Open(p.File)
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }() // it was only read
		in = file
	}
	var bodies []string
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20) // a message's largest size
	for lines.Scan() {
		if line := strings.TrimSpace(lines.Text()); line != "" && !strings.HasPrefix(line, "#") {
			bodies = append(bodies, line)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read %s: %w", p.File, err)
	}
	return bodies, nil
}

// warn says which bodies the function will park.
func warn(w io.Writer, bodies []string) {
	decoder := sqs.NewDecoder()
	for i, body := range bodies {
		if _, err := decoder.Decode(body); err != nil {
			fmt.Fprintf(w, "message %d will be parked: %v\n", i+1, err)
		}
	}
}

type queue struct {
	client *sdk.Client
	url    string
}

// perCall is how many entries SQS takes in one SendMessageBatch.
const perCall = 10

// send returns how many bodies the queue is known to hold. The error names each of the others by its number, from 1, and why. It
// stops at a call that fails as a whole, because the next would as well.
func (q queue) send(ctx context.Context, bodies []string) (posted int, err error) {
	var refused []error
	for from := 0; from < len(bodies); from += perCall {
		chunk := bodies[from:min(from+perCall, len(bodies))]
		failed, err := q.sendOnce(ctx, chunk, from+1)
		if err != nil { // its answer may have been lost: posting an order twice is harmless, so nobody needs to find out
			whole := fmt.Errorf("messages %d to %d may or may not be posted, later ones are not: %w", from+1, from+len(chunk), err)
			return posted, errors.Join(append(refused, whole)...)
		}
		posted += len(chunk) - len(failed)
		refused = append(refused, failed...)
	}
	return posted, errors.Join(refused...)
}

// sendOnce makes one call. Its entries are named by their bodies' numbers.
func (q queue) sendOnce(ctx context.Context, bodies []string, first int) (failed []error, err error) {
	entries := make([]types.SendMessageBatchRequestEntry, len(bodies))
	for i := range bodies {
		entries[i] = types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(first + i)), MessageBody: &bodies[i]}
	}
	out, err := q.client.SendMessageBatch(ctx, &sdk.SendMessageBatchInput{QueueUrl: &q.url, Entries: entries})
	if err != nil {
		return nil, err
	}
	for _, f := range out.Failed {
		failed = append(failed, fmt.Errorf("message %s: %s: %s", aws.ToString(f.Id), aws.ToString(f.Code), aws.ToString(f.Message)))
	}
	return failed, nil
}
