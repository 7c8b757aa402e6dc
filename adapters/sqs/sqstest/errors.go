package sqstest

import (
	"fmt"
	"net/http"
	"time"
)

// Error codes of the machine and the server, named as in the API reference.
const (
	CodeBatchEntryIDsNotDistinct     = "BatchEntryIdsNotDistinct"
	CodeBatchRequestTooLong          = "BatchRequestTooLong"
	CodeEmptyBatchRequest            = "EmptyBatchRequest"
	CodeInternalError                = "InternalError"
	CodeInvalidAttributeValue        = "InvalidAttributeValue"
	CodeInvalidMessageContents       = "InvalidMessageContents"
	CodeInvalidParameterValue        = "InvalidParameterValue"
	CodeMissingParameter             = "MissingParameter"
	CodeOverLimit                    = "OverLimit" // only injected: see Server.Fail
	CodeQueueDoesNotExist            = "QueueDoesNotExist"
	CodeQueueNameExists              = "QueueNameExists"
	CodeReceiptHandleIsInvalid       = "ReceiptHandleIsInvalid"
	CodeServiceUnavailable           = "ServiceUnavailable"
	CodeTooManyEntriesInBatchRequest = "TooManyEntriesInBatchRequest"
	CodeUnsupportedOperation         = "UnsupportedOperation"
)

// Error is an error of SQS with one of the codes above.
type Error struct{ Code, Message string }

// Error returns the code and the message.
func (e *Error) Error() string { return e.Code + ": " + e.Message }

func (e *Error) status() int {
	switch e.Code {
	case CodeInternalError:
		return http.StatusInternalServerError
	case CodeServiceUnavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusBadRequest
}

// queryCode returns the code that the error had in the Query protocol, which SDKs still
// report (trait awsQueryError in the SQS model).
func (e *Error) queryCode() string {
	switch e.Code {
	case CodeQueueDoesNotExist:
		return "AWS.SimpleQueueService.NonExistentQueue"
	case CodeBatchEntryIDsNotDistinct, CodeBatchRequestTooLong, CodeEmptyBatchRequest,
		CodeTooManyEntriesInBatchRequest, CodeUnsupportedOperation:
		return "AWS.SimpleQueueService." + e.Code
	}
	return e.Code
}

// blame returns who caused the error, as the Query protocol calls them.
func (e *Error) blame() string {
	if e.status() < http.StatusInternalServerError {
		return "Sender"
	}
	return "Receiver"
}

func fault(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

func invalid(format string, args ...any) *Error {
	return fault(CodeInvalidParameterValue, format, args...)
}

func noQueue(name string) *Error {
	return fault(CodeQueueDoesNotExist, "The specified queue does not exist: %q.", name)
}

func missing(parameter string) *Error {
	return fault(CodeMissingParameter, "The request must contain the parameter %s.", parameter)
}

func outside(parameter string, value any, reason string) *Error {
	return invalid("Value %v for parameter %s is invalid. Reason: %s", value, parameter, reason)
}

func seconds(d time.Duration) int { return int(d / time.Second) }
