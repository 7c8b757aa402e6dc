// Package lambda starts a Lambda function, and writes its logs and metrics as Lambda and CloudWatch read them. It hides
// aws-lambda-go. It refuses to know what an event holds, how the function is configured and which services it calls.
package lambda

import (
	"context"
	"io"
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
)

// Start serves invocations with handle until the process is ended; it does not return. Events and answers are JSON.
// The context is the parent of every invocation's context, which ends at the function's deadline.
// A panic that handle lets through is reported to Lambda and ends the process.
func Start[In, Out any](ctx context.Context, handle func(context.Context, In) (Out, error)) {
	// No WithEnableSIGTERM: it registers an extension, which costs a start two calls, and a killed process must be
	// safe anyway.
	lambda.StartWithOptions(handle, lambda.WithContext(ctx))
}

// Fail ends a process that cannot start: it writes err as one JSON line at level ERROR and exits, so that Lambda reports
// Runtime.ExitError and the reason stands beside it in the log.
func Fail(w io.Writer, err error) {
	NewLogger(w, slog.LevelError).Error("function cannot start", slog.Any("error", err))
	os.Exit(1)
}

// NewLogger writes JSON lines with the keys timestamp (RFC 3339), level and message, which Lambda needs to filter by
// level: https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-log-level.html. It adds no function name
// or version, because the names of log group and log stream carry both.
func NewLogger(w io.Writer, level slog.Leveler) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: lambdacontext.ReplaceAttr}))
}

// RequestID is the id of the invocation that ctx belongs to, as Lambda's own log lines show it; empty outside of one.
func RequestID(ctx context.Context) string {
	call, ok := lambdacontext.FromContext(ctx)
	if !ok {
		return ""
	}
	return call.AwsRequestID
}
