package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"

	"orderonce/adapters/config"
)

// World is where a rule is checked.
type World struct {
	URL    string // base URL of the service; "" for the AWS region of Config
	Key    string // of Stripe
	Config aws.Config
	HTTP   *http.Client
	Lambda Lambda // nil: there is none
	Double any    // the double itself, to make it fail as the real service may; else nil
	Prefix string

	API      string // URL of an HTTP API whose function does what echo does; "": there is none
	Identity string // address from which SES may send; "": there is none

	clock *clock // nil: the real one
	moved func() // called after the clock moved, if it is not nil
	close func() error
}

func (w World) double() bool { return w.Double != nil }

type clock struct{ now, looks atomic.Int64 }

func newClock(at time.Time) *clock {
	c := &clock{}
	c.now.Store(at.UnixNano())
	return c
}

// Now returns the time of the clock.
func (c *clock) Now() time.Time {
	c.looks.Add(1)
	return time.Unix(0, c.now.Load()).UTC()
}

// Now returns the time of the world.
func (w World) Now() time.Time {
	if w.clock == nil {
		return time.Now()
	}
	return w.clock.Now()
}

// Pass moves a double's clock, or waits.
func (w World) Pass(ctx context.Context, d time.Duration) error {
	if w.clock != nil {
		if w.clock.now.Add(int64(d)); w.moved != nil {
			w.moved()
		}
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// meter counts requests, and refuses those above a limit, so that a mistake in a check
// costs nothing.
type meter struct {
	base  http.RoundTripper
	limit int64
	calls atomic.Int64
}

// RoundTrip counts a request and sends it.
func (m *meter) RoundTrip(r *http.Request) (*http.Response, error) {
	if n := m.calls.Add(1); n > m.limit {
		return nil, fmt.Errorf("%w: %d: raise --limit, or report a bug", errLimit, m.limit)
	}
	return m.base.RoundTrip(r)
}

var errLimit = errors.New("call limit reached")

// awsConfig is the configuration of every client: rules are about single answers, so only
// what says nothing about a rule is repeated.
func awsConfig(base aws.Config, client *http.Client) aws.Config {
	c := base
	c.HTTPClient = config.WholeBody(client)
	c.Retryer = func() aws.Retryer {
		return retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts, o.MaxBackoff = 4, 5*time.Second
			o.Retryables = []retry.IsErrorRetryable{retry.IsErrorRetryableFunc(func(err error) aws.Ternary {
				return aws.BoolTernary(kindOf(err) == throttled || kindOf(err) == lost)
			})}
		})
	}
	return c
}

// kind is what an error says about a rule.
type kind int

const (
	none      kind = iota
	refused        // the service does not accept what the rule says that it accepts
	lacks          // the endpoint does not have the operation
	throttled      // nothing: try again later
	denied         // nothing: the caller may not do this
	lost           // nothing: no answer came
)

func kindOf(err error) kind {
	if err == nil {
		return none
	}
	code, status := codeOf(err)
	switch {
	case slices.Contains([]string{
		"UnknownOperationException", "UnknownOperation", "NotImplemented", "InvalidAction", "UnsupportedOperation",
		"AWS.SimpleQueueService.UnsupportedOperation",
	}, code), status == http.StatusNotImplemented, code == "" && status == http.StatusInternalServerError: // of moto
		return lacks
	case slices.Contains([]string{
		"Throttling", "ThrottlingException", "RequestThrottled", "ProvisionedThroughputExceededException",
		"TooManyRequestsException", "rate_limit",
	}, code), status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		return throttled
	case slices.Contains([]string{
		"AccessDenied", "AccessDeniedException", "UnrecognizedClientException", "ExpiredToken", "ExpiredTokenException",
		"InvalidClientTokenId", "SignatureDoesNotMatch", "IncompleteSignature",
	}, code), status == http.StatusUnauthorized, status == http.StatusForbidden:
		return denied
	case code != "", status == http.StatusInternalServerError: // an emulator's error may have no code
		return refused
	}
	return lost
}

func codeOf(err error) (code string, status int) {
	if e, is := errors.AsType[smithy.APIError](err); is {
		code = e.ErrorCode()
	}
	if e, is := errors.AsType[interface {
		error
		HTTPStatusCode() int
	}](err); is {
		status = e.HTTPStatusCode()
	}
	return code, status
}
