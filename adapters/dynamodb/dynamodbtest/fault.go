package dynamodbtest

import (
	"encoding/json"
	"hash/crc32"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kind is what happens to a failed call. The quotation is from "Error handling with
// DynamoDB" in the developer guide.
type Kind string

// The kinds of Fault.
const (
	Slow                  Kind = ""                      // only the Delay
	ThroughputExceeded    Kind = "ThroughputExceeded"    // a table or an index is over its capacity
	Throttled             Kind = "Throttled"             // DynamoDB sheds load
	RequestLimitExceeded  Kind = "RequestLimitExceeded"  // the account is over its quota
	InternalError         Kind = "InternalError"         // 500 without effect
	InternalErrorAfter    Kind = "InternalErrorAfter"    // 500 after it: "may have succeeded or failed"
	TransactionConflict   Kind = "TransactionConflict"   // another transaction holds an item
	TransactionInProgress Kind = "TransactionInProgress" // of the same client request token
	LoseBefore            Kind = "LoseBefore"            // the engine does not receive the call
	LoseAfter             Kind = "LoseAfter"             // the response is lost
	AccessDenied          Kind = "AccessDenied"          // the policy lacks the action
	ExpiredToken          Kind = "ExpiredToken"          // the temporary credentials have expired
)

// Possible reports whether DynamoDB documents k for an operation. Faults apply to such
// operations only. API reference: TransactionConflictException is an error of the three
// writes and a cancellation reason of transactions, TransactionInProgressException is an
// error of TransactWriteItems. Developer guide, "DynamoDB transactions: how it works": a
// transaction and a GetItem "can both succeed".
func (k Kind) Possible(operation string) bool {
	switch k { //nolint:exhaustive // the others are possible for any operation
	case TransactionConflict:
		return slices.Contains([]string{"PutItem", "UpdateItem", "DeleteItem", transaction}, operation)
	case TransactionInProgress:
		return operation == transaction
	}
	return true
}

const transaction = "TransactWriteItems"

// Fault describes calls and how they fail. Zero fields match every call.
type Fault struct {
	Operation string                 // for example UpdateItem
	Number    int                    // Call.Number
	Match     func(body []byte) bool // on the request's JSON; must not call the proxy
	Times     int                    // number of calls; 0: all until Heal
	Delay     time.Duration          // before the Kind's effect
	Kind      Kind
}

// choose returns the first fault that matches a call and counts down its Times, or
// returns the zero Fault.
func (p *Proxy) choose(call Call) Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, fault := range p.faults {
		if !fault.matches(call) {
			continue
		}
		switch fault.Times {
		case 0: // until Heal
		case 1:
			p.faults = slices.Delete(p.faults, i, i+1)
		default:
			fault.Times--
		}
		return *fault
	}
	return Fault{}
}

func (f *Fault) matches(call Call) bool {
	return f.Kind.Possible(call.Operation) &&
		(f.Operation == "" || f.Operation == call.Operation) &&
		(f.Number == 0 || f.Number == call.Number) &&
		(f.Match == nil || f.Match(call.Request))
}

// reject returns DynamoDB's error response, or nil for a Kind without one. The codes and
// formats are documented in "Error handling with DynamoDB" and TransactWriteItems.
func (f *Fault) reject(operation string, body []byte) *response {
	code, reason := "", "" // of the error, and of a transaction that it cancels
	switch f.Kind {
	case Slow, LoseBefore, LoseAfter, InternalErrorAfter:
		return nil
	case InternalError:
		return internalError()
	case ThroughputExceeded:
		code, reason = dynamoDB+"ProvisionedThroughputExceededException", "ProvisionedThroughputExceeded"
	case Throttled:
		code, reason = "com.amazon.coral.availability#ThrottlingException", "ThrottlingError"
	case TransactionConflict:
		code, reason = dynamoDB+"TransactionConflictException", "TransactionConflict"
	case RequestLimitExceeded:
		code = dynamoDB + "RequestLimitExceeded"
	case TransactionInProgress:
		code = dynamoDB + "TransactionInProgressException"
	case AccessDenied, ExpiredToken:
		code = "com.amazon.coral.service#" + string(f.Kind) + "Exception"
	}
	if reason != "" && operation == transaction {
		return cancellation(reason, body)
	}
	return errorResponse(http.StatusBadRequest, code)
}

// dynamoDB is the prefix of DynamoDB's own error types.
const dynamoDB = "com.amazonaws.dynamodb.v20120810#"

func internalError() *response {
	return errorResponse(http.StatusInternalServerError, dynamoDB+"InternalServerError")
}

func errorResponse(status int, kind string) *response {
	return jsonResponse(status, map[string]any{"__type": kind, "message": "Rejected by the test proxy."})
}

// cancellation returns a canceled transaction whose first item has the code. DynamoDB
// returns one reason for each item, in order.
func cancellation(code string, body []byte) *response {
	var transaction struct{ TransactItems []json.RawMessage }
	if err := json.Unmarshal(body, &transaction); err != nil {
		return errorResponse(http.StatusBadRequest, "com.amazon.coral.service#SerializationException")
	}
	codes := make([]string, len(transaction.TransactItems))
	reasons := make([]map[string]string, len(codes))
	for i := range codes {
		codes[i] = "None"
		if i == 0 {
			codes[i] = code
		}
		reasons[i] = map[string]string{"Code": codes[i]}
	}
	return jsonResponse(http.StatusBadRequest, map[string]any{
		"__type": dynamoDB + "TransactionCanceledException",
		"Message": "Transaction cancelled, please refer cancellation reasons for specific reasons [" +
			strings.Join(codes, ", ") + "]",
		"CancellationReasons": reasons,
	})
}

func jsonResponse(status int, content map[string]any) *response {
	body, err := json.Marshal(content)
	if err != nil {
		panic(err) // a bug in this file: the values are strings
	}
	header := http.Header{}
	header.Set("Content-Type", "application/x-amz-json-1.0")
	header.Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10))
	header.Set("X-Amzn-Requestid", "PRETEND")
	return &response{status: status, header: header, body: body}
}
