// Package lambda starts a Lambda function, and writes its logs and metrics in the formats
// that Lambda and CloudWatch read. It hides aws-lambda-go. It does not know what an event
// holds, how the function is configured and which services it calls.
package lambda

import (
	"context"
	"io"
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
)

// Start calls handle for each invocation and does not return. Events and responses are
// JSON. ctx is the parent of every invocation's context, which ends at the function's
// deadline. If handle panics, Start reports the panic to Lambda and ends the process.
func Start[In, Out any](ctx context.Context, handle func(context.Context, In) (Out, error)) {
	// No WithEnableSIGTERM: it registers an extension, which costs a cold start two
	// calls, and an order must be safe if its process is killed.
	lambda.StartWithOptions(handle, lambda.WithContext(ctx))
}

// Fail writes err as one JSON line at level ERROR and exits, for a function that cannot
// start. Lambda then reports Runtime.ExitError, and the log line shows why.
func Fail(w io.Writer, err error) {
	NewLogger(w, slog.LevelError).Error("function cannot start", slog.Any("error", err))
	os.Exit(1)
}

// NewLogger returns a logger that writes JSON lines with the keys timestamp (RFC 3339),
// level and message, by which Lambda filters:
// https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-log-level.html.
// The lines have no function name and version, because the log group and the log stream
// show them.
func NewLogger(w io.Writer, level slog.Leveler) *slog.Logger {
	return slog.New(
		slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: lambdacontext.ReplaceAttr}),
	)
}

// RequestID returns the id of the invocation that ctx belongs to, as in Lambda's own log
// lines. It returns "" outside of an invocation.
func RequestID(ctx context.Context) string {
	call, ok := lambdacontext.FromContext(ctx)
	if !ok {
		return ""
	}
	return call.AwsRequestID
}
