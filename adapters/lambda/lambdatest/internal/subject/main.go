// Command subject is the function that the tests of lambdatest run: it does what its
// payload says.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"orderonce/adapters/lambda"
)

type order struct {
	Do   string `json:"do"`
	Text string `json:"text"`
}

type report struct {
	PID                         int
	RequestID, ARN, Trace, Text string
	Deadline                    time.Time
	Env                         []string
}

func main() {
	switch variable("INIT") {
	case "exit":
		lambda.Fail(os.Stdout, errors.New("STRIPE_KEY: missing"))
	case "panic":
		panic("no key")
	case "error":
		post(context.Background(), "init/error", `{"errorType":"Config","errorMessage":"no key"}`)
		os.Exit(1)
	}
	lambda.Start(context.Background(), handle)
}

func handle(ctx context.Context, o order) (any, error) {
	if o.Do == "" {
		o.Do = variable("DO") // for an event that is not one of these tests
	}
	switch o.Do {
	case "fail":
		return nil, fmt.Errorf("refused: %s", o.Text)
	case "panic":
		panic(o.Text)
	case "exit":
		say(o.Text)
		os.Exit(4)
	case "hang":
		say(o.Text + "\n")
		time.Sleep(time.Hour)
	case "lines": // in two parts each
		for range 200 {
			say(strings.Repeat(o.Text, 500))
			say(strings.Repeat(o.Text, 500) + "\n")
		}
	case "later": // in the background
		go func() {
			for _, err := os.Stat(o.Text); err != nil; _, err = os.Stat(o.Text) {
				time.Sleep(time.Millisecond)
			}
			_ = os.WriteFile(o.Text+".seen", nil, 0o600)
		}()
	case "until": // the file exists
		say(fmt.Sprintln(os.Getpid()))
		for _, err := os.Stat(o.Text); err != nil; _, err = os.Stat(o.Text) {
			time.Sleep(time.Millisecond)
		}
	case "print":
		say(o.Text + "\n")
	}
	return reportOn(ctx, o.Text), nil
}

func reportOn(ctx context.Context, text string) report {
	call, _ := lambdacontext.FromContext(ctx)
	deadline, _ := ctx.Deadline()
	trace, _ := ctx.Value("x-amzn-trace-id").(string)
	id := lambda.RequestID(ctx)
	return report{os.Getpid(), id, call.InvokedFunctionArn, trace, text, deadline, os.Environ()}
}

// post speaks the Runtime API by hand and returns the status.
func post(ctx context.Context, path, body string) string {
	url := "http://" + variable("AWS_LAMBDA_RUNTIME_API") + "/2018-06-01/runtime/" + path
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error()
	}
	_ = response.Body.Close()
	return response.Status
}

func variable(name string) string { return os.Getenv(name) }

func say(text string) { _, _ = os.Stdout.WriteString(text) }
