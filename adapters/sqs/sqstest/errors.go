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
	CodeInvalidAction                = "InvalidAction"
	CodeInvalidAttributeName         = "InvalidAttributeName"
	CodeInvalidAttributeValue        = "InvalidAttributeValue"
	CodeInvalidBatchEntryID          = "InvalidBatchEntryId"
	CodeInvalidMessageContents       = "InvalidMessageContents"
	CodeInvalidParameterValue        = "InvalidParameterValue"
	CodeMissingParameter             = "MissingParameter"
	CodeNoSource                     = "CouldNotDetermineMessageSource"
	CodeOverLimit                    = "OverLimit"
	CodeQueueDoesNotExist            = "QueueDoesNotExist"
	CodeQueueNameExists              = "QueueNameExists"
	CodeReceiptHandleIsInvalid       = "ReceiptHandleIsInvalid"
	CodeResourceNotFound             = "ResourceNotFoundException"
	CodeServiceUnavailable           = "ServiceUnavailable"
	CodeTooManyEntriesInBatchRequest = "TooManyEntriesInBatchRequest"
	CodeUnsupportedOperation         = "UnsupportedOperation"
	CodeUnsupportedProtocol          = "UnsupportedProtocol" // not a code of SQS: see rejectQuery
)

// Error is an error of SQS with one of the codes above.
type Error struct{ Code, Message string }

// Error returns the code and the message.
func (e *Error) Error() string { return e.Code + ": " + e.Message }

// status returns the HTTP status of SQS's response.
func (e *Error) status() int {
	switch e.Code {
	case CodeInternalError:
		return http.StatusInternalServerError
	case CodeServiceUnavailable:
		return http.StatusServiceUnavailable
	case CodeResourceNotFound:
		return http.StatusNotFound
	}
	return http.StatusBadRequest
}

// queryCode returns the code that the error had in the Query protocol, which SDKs still
// report (trait awsQueryError in the SQS model).
func (e *Error) queryCode() string {
	switch e.Code {
	case CodeQueueDoesNotExist:
		return "AWS.SimpleQueueService.NonExistentQueue"
	case CodeQueueNameExists:
		return "QueueAlreadyExists"
	case CodeBatchEntryIDsNotDistinct, CodeBatchRequestTooLong, CodeEmptyBatchRequest,
		CodeInvalidBatchEntryID, CodeTooManyEntriesInBatchRequest, CodeUnsupportedOperation:
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

func noQueue(name string) *Error {
	return fault(CodeQueueDoesNotExist, "The specified queue does not exist: %q.", name)
}

func outside(parameter string, value any, reason string) *Error {
	return fault(
		CodeInvalidParameterValue, "Value %v for parameter %s is invalid. Reason: %s", value, parameter, reason,
	)
}

func unknownAttribute(name string) *Error {
	return fault(CodeInvalidAttributeName, "Unknown Attribute %s.", name)
}

func badAttribute(name string) *Error {
	return fault(CodeInvalidAttributeValue, "Invalid value for the parameter %s.", name)
}

func seconds(d time.Duration) int { return int(d / time.Second) }
