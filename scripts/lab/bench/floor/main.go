// Command floor is a Lambda function that repeats the recorded calls of the order
// function with net/http alone: byte for byte, without an SDK, a signature or a decision.
// What it costs, every handler that makes these calls in Go pays.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"orderonce/scripts/lab/bench/batch"
)

// call is a recorded request.
type call struct {
	Service, Path string
	Header        http.Header
	Body          string
}

type function struct {
	calls    []call
	recorded string // the orderId in the recorded calls, which the id of an order replaces
	address  map[string]string
	client   http.Client
}

func main() {
	f := function{
		recorded: os.Getenv("RECORDED_ID"),
		address: map[string]string{
			"dynamodb": os.Getenv("AWS_ENDPOINT_URL_DYNAMODB"), "stripe": os.Getenv("STRIPE_API_BASE"),
		},
		client: http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 10}},
	}
	if err := json.Unmarshal([]byte(os.Getenv("RECORDED_CALLS")), &f.calls); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	batch.Start(f.repeat)
}

// repeat ends at the first response that is not OK: that of a duplicate.
func (f *function) repeat(ctx context.Context, m events.SQSMessage) error {
	var o struct {
		ID string `json:"orderId"`
	}
	if err := json.Unmarshal([]byte(m.Body), &o); err != nil {
		return err
	}
	for _, c := range f.calls {
		path, body := strings.ReplaceAll(c.Path, f.recorded, o.ID), strings.ReplaceAll(c.Body, f.recorded, o.ID)
		url := f.address[c.Service] + path
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
		if err != nil {
			return err
		}
		request.Header = c.Header
		response, err := f.client.Do(request)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK {
			return err
		}
	}
	return nil
}
