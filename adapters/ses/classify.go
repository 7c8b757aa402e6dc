package ses

import (
	"errors"
	"fmt"
	"net"
	"net/http"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"orderonce/domain/order"
	"orderonce/domain/receipt"
)

// classify returns the *receipt.SendError of a failed call. A message was certainly not
// sent if SES refused the request, or if no connection was made. Everything else is
// unknown: a time-out, a reset, a server error, an unreadable response.
//
// The error repeats no message of SES's, which may contain the recipient, as in "Email
// address is not verified".
func classify(err error) error {
	status, requestID := 0, ""
	if e, ok := errors.AsType[*awshttp.ResponseError](err); ok {
		status, requestID = e.HTTPStatusCode(), e.ServiceRequestID()
	}
	code := ""
	if e, ok := errors.AsType[smithy.APIError](err); ok {
		code = e.ErrorCode()
	}
	kind := kindOf(status, code)
	if e, ok := errors.AsType[*net.OpError](err); status == 0 && ok && e.Op == "dial" { // never connected
		kind = order.KindUnavailable
	}
	if status != 0 {
		err = fmt.Errorf("status %d %s (request %s)", status, code, requestID)
	}
	return &receipt.SendError{Kind: kind, Code: code, Err: err}
}

// kindOf returns what a response means. SES's own errors are those of SendEmail
// (https://docs.aws.amazon.com/ses/latest/APIReference-V2/API_SendEmail.html); the others
// are common to all services.
func kindOf(status int, code string) order.ErrorKind {
	switch code {
	case "TooManyRequestsException", "LimitExceededException", "ThrottlingException", "Throttling":
		return order.KindUnavailable
	case "AccountSuspendedException", "SendingPausedException", "MailFromDomainNotVerifiedException",
		"NotFoundException": // the configuration set does not exist
		return order.KindMisconfigured
	}
	switch {
	case status == http.StatusTooManyRequests:
		return order.KindUnavailable
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusNotFound:
		return order.KindMisconfigured
	case status == http.StatusRequestTimeout:
		return order.KindUnknown
	case status >= http.StatusBadRequest && status < http.StatusInternalServerError:
		return order.KindRefused
	}
	return order.KindUnknown
}
