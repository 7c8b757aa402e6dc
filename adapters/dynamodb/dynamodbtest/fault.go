package dynamodbtest

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kind says what happens to a spoiled call. The quotation is from "Error handling with
// DynamoDB" in the developer guide.
type Kind int

// The kinds of Fault.
const (
	Slow                  Kind = iota // only the Delay
	ThroughputExceeded                // the table or an index is over its capacity
	Throttled                         // DynamoDB sheds load
	RequestLimitExceeded              // the account is over its quota
	InternalError                     // 500, without effect
	InternalErrorAfter                // 500, after the engine has obeyed: a write "may have succeeded or failed"
	TransactionConflict               // another transaction holds an item
	TransactionInProgress             // the same client request token is being worked on
	LoseBefore                        // the connection ends before the engine hears of the call
	LoseAfter                         // the connection ends after the engine has obeyed
	AccessDenied                      // the caller's policy lacks the action; never worth a retry
	ExpiredToken                      // the caller's temporary credentials are too old
)

// String is the name of the constant.
func (k Kind) String() string {
	names := [...]string{
		Slow: "Slow", ThroughputExceeded: "ThroughputExceeded", Throttled: "Throttled", RequestLimitExceeded: "RequestLimitExceeded",
		InternalError: "InternalError", InternalErrorAfter: "InternalErrorAfter", TransactionConflict: "TransactionConflict",
		TransactionInProgress: "TransactionInProgress", LoseBefore: "LoseBefore", LoseAfter: "LoseAfter",
		AccessDenied: "AccessDenied", ExpiredToken: "ExpiredToken",
	}
	if k < 0 || int(k) >= len(names) {
		return fmt.Sprintf("Kind(%d)", int(k))
	}
	return names[k]
}

// Possible reports whether an operation can end so, as DynamoDB documents it: a fault
// leaves calls alone that can't. API reference: TransactionConflictException is an error
// of the three writes, and a reason to cancel a transaction;
// TransactionInProgressException one of TransactWriteItems. Developer guide, "DynamoDB
// transactions: how it works": a transaction and a GetItem "can both succeed".
func (k Kind) Possible(operation string) bool {
	switch k { //nolint:exhaustive // any operation can have the others
	case TransactionConflict:
		return operation == "PutItem" || operation == "UpdateItem" || operation == "DeleteItem" ||
			isTransaction(operation)
	case TransactionInProgress:
		return operation == "TransactWriteItems"
	}
	return true
}

func isTransaction(operation string) bool {
	return operation == "TransactWriteItems" || operation == "TransactGetItems"
}

// Fault describes calls to spoil and how. Zero fields restrict nothing.
type Fault struct {
	Operation string                 // for example UpdateItem
	Number    int                    // Call.Number
	Match     func(body []byte) bool // on the request's JSON; must not call the proxy
	Times     int                    // calls to spoil; 0: all until Heal
	Delay     time.Duration          // first, whatever the Kind
	Kind      Kind
}

// choose returns the fault that acts on a call, or one that does nothing, and uses it up.
func (p *Proxy) choose(call Call, body []byte) Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, fault := range p.faults {
		if !fault.fits(call, body) {
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

func (f *Fault) fits(call Call, body []byte) bool {
	return f.Kind.Possible(call.Operation) &&
		(f.Operation == "" || f.Operation == call.Operation) &&
		(f.Number == 0 || f.Number == call.Number) &&
		(f.Match == nil || f.Match(body))
}

// refuse returns the answer that DynamoDB would give, or nil for a fault that is no
// answer. Codes and shapes are those of the API reference: "Error handling with DynamoDB"
// and TransactWriteItems.
func (f *Fault) refuse(operation string, body []byte) *answer {
	inTransaction := isTransaction(operation)
	switch f.Kind {
	case Slow, LoseBefore, LoseAfter, InternalErrorAfter:
		return nil
	case ThroughputExceeded:
		if inTransaction {
			return cancellation("ProvisionedThroughputExceeded", body)
		}
		return refusal(
			http.StatusBadRequest,
			"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
		)
	case Throttled:
		if inTransaction {
			return cancellation("ThrottlingError", body)
		}
		return refusal(http.StatusBadRequest, "com.amazon.coral.availability#ThrottlingException")
	case RequestLimitExceeded:
		return refusal(http.StatusBadRequest, "com.amazonaws.dynamodb.v20120810#RequestLimitExceeded")
	case InternalError:
		return internalError()
	case TransactionConflict:
		if inTransaction {
			return cancellation("TransactionConflict", body)
		}
		return refusal(http.StatusBadRequest, "com.amazonaws.dynamodb.v20120810#TransactionConflictException")
	case TransactionInProgress:
		return refusal(http.StatusBadRequest, "com.amazonaws.dynamodb.v20120810#TransactionInProgressException")
	case AccessDenied:
		return refusal(http.StatusBadRequest, "com.amazon.coral.service#AccessDeniedException")
	case ExpiredToken:
		return refusal(http.StatusBadRequest, "com.amazon.coral.service#ExpiredTokenException")
	}
	panic(fmt.Sprintf("dynamodbtest: no such kind of fault: %v", f.Kind))
}

func internalError() *answer {
	return refusal(http.StatusInternalServerError, "com.amazonaws.dynamodb.v20120810#InternalServerError")
}

func refusal(status int, kind string) *answer {
	return jsonAnswer(status, map[string]any{"__type": kind, "message": "Refused by the test's proxy."})
}

// cancellation blames the first item of the transaction. DynamoDB gives one reason for
// each item, in their order.
func cancellation(code string, body []byte) *answer {
	var transaction struct{ TransactItems []json.RawMessage }
	if err := json.Unmarshal(body, &transaction); err != nil {
		return refusal(http.StatusBadRequest, "com.amazon.coral.service#SerializationException")
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
	return jsonAnswer(http.StatusBadRequest, map[string]any{
		"__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
		"Message": "Transaction cancelled, please refer cancellation reasons for specific reasons [" +
			strings.Join(codes, ", ") + "]",
		"CancellationReasons": reasons,
	})
}

func jsonAnswer(status int, content map[string]any) *answer {
	body, err := json.Marshal(content)
	if err != nil {
		panic(err) // strings only
	}
	header := http.Header{}
	header.Set("Content-Type", "application/x-amz-json-1.0")
	header.Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10))
	header.Set("X-Amzn-Requestid", "PRETEND")
	return &answer{status: status, header: header, body: body}
}
