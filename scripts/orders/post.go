package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
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

type queueConfig struct {
	AWS   lambda.AWS
	Queue string `env:"QUEUE_URL,notEmpty" want:"the URL of the order queue"`
}

// Run posts every line, also what is no order: what becomes of that is worth seeing.
func (p post) Run(ctx context.Context) error {
	c, err := lambda.ReadEnv[queueConfig](os.Environ())
	if err != nil {
		return err
	}
	bodies, err := p.read()
	if err != nil {
		return err
	}
	warn(os.Stderr, bodies)
	client := sdk.NewFromConfig(c.AWS.Config(lambda.SQS, awsClient()))
	for batch := range slices.Chunk(bodies, 10) { // SQS takes ten entries a call
		if err := send(ctx, client, c.Queue, batch); err != nil {
			return err
		}
	}
	fmt.Printf("%d messages posted\n", len(bodies))
	return nil
}

func (p post) read() ([]string, error) {
	in := io.Reader(os.Stdin)
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

func send(ctx context.Context, client *sdk.Client, queue string, bodies []string) error {
	entries := make([]types.SendMessageBatchRequestEntry, len(bodies))
	for i := range bodies {
		entries[i] = types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), MessageBody: &bodies[i]}
	}
	out, err := client.SendMessageBatch(ctx, &sdk.SendMessageBatchInput{QueueUrl: &queue, Entries: entries})
	if err != nil {
		return fmt.Errorf("post %d messages to %s: %w", len(bodies), queue, err)
	}
	for _, f := range out.Failed {
		return fmt.Errorf("post to %s: message %s: %s", queue, aws.ToString(f.Id), aws.ToString(f.Code))
	}
	return nil
}
