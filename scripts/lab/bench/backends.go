package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// The prefix of an order's id decides its row in the canned table: none, or paid.
const (
	freshPrefix   = "FRESH"
	settledPrefix = "PAID"
)

// total is the amount of every order in cents: a Confirm request has no amount, and the
// canned Stripe has no state.
const total = 1999

const (
	scope      = "bench"
	pretendKey = "sk_test_pretend"
)

// backends are the canned DynamoDB and the canned Stripe. They count calls.
type backends struct {
	dynamodb, stripe           *http.Server
	dynamodbURL, stripeURL     string
	dynamodbCalls, stripeCalls atomic.Int64

	served sync.WaitGroup
	serial int // of the last order that event made
}

func (b *backends) calls() int64 { return b.dynamodbCalls.Load() + b.stripeCalls.Load() }

func serveBackends() (*backends, error) {
	b := &backends{}
	b.dynamodb = &http.Server{Handler: http.HandlerFunc(b.serveDynamoDB), ReadHeaderTimeout: time.Minute}
	b.stripe = &http.Server{Handler: http.HandlerFunc(b.serveStripe), ReadHeaderTimeout: time.Minute}
	var err, other error
	b.dynamodbURL, err = b.serve(b.dynamodb)
	b.stripeURL, other = b.serve(b.stripe)
	if err = errors.Join(err, other); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

func (b *backends) serve(s *http.Server) (url string, err error) {
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return "", fmt.Errorf("listen for a canned back end: %w", err)
	}
	b.served.Go(func() { _ = s.Serve(listener) }) // Close makes it return ErrServerClosed
	return "http://" + listener.Addr().String(), nil
}

// Close stops both servers.
func (b *backends) Close() error {
	err := errors.Join(b.dynamodb.Close(), b.stripe.Close())
	b.served.Wait()
	return err
}

// item is the attributes of an item, or the values of an expression.
type item map[string]json.RawMessage

// update is the part of an UpdateItem request that is read here.
type update struct {
	Key                       item
	UpdateExpression          string
	ExpressionAttributeNames  map[string]string
	ExpressionAttributeValues item
	ReturnValues              string
}

// serveDynamoDB responds to Begin, Bind and Finish from the request alone. Anything else
// is an error, so that an order that is not settled is noticed.
func (b *backends) serveDynamoDB(w http.ResponseWriter, r *http.Request) {
	b.dynamodbCalls.Add(1)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the function closed the connection
	}
	status, response := http.StatusOK, "{}"
	switch _, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), "."); operation {
	case "UpdateItem":
		status, response = respondToUpdate(body)
	case "TransactWriteItems": // Finish, which reads nothing of the response
	default:
		status, response = unknown(operation)
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	checksum := crc32.ChecksumIEEE([]byte(response)) // the SDK verifies it
	w.Header().Set("X-Amz-Crc32", strconv.FormatUint(uint64(checksum), 10))
	w.Header().Set("Content-Length", strconv.Itoa(len(response)))
	w.WriteHeader(status)
	_, _ = io.WriteString(w, response) //nolint:gosec // G705: JSON, and no browser
}

func respondToUpdate(body []byte) (status int, response string) {
	var u update
	if err := json.Unmarshal(body, &u); err != nil {
		return unknown(err.Error())
	}
	row := u.row()
	begins := row["leaseUntil"] != nil
	switch {
	case !begins && row["intentId"] == nil: // neither Begin nor Bind
		return unknown(u.UpdateExpression)
	case begins && strings.Contains(string(row["orderId"]), settledPrefix):
		for _, name := range []string{"owner", "leaseUntil", "openShard", "dueAt"} {
			delete(row, name)
		}
		row["status"], row["seq"] = json.RawMessage(`{"S":"paid"}`), json.RawMessage(`{"N":"1"}`)
		row["intentId"] = json.RawMessage(`{"S":"pi_settled"}`)
		return http.StatusBadRequest,
			`{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException",` +
				`"message":"The conditional request failed","Item":` + asJSON(row) + `}`
	case u.ReturnValues == "ALL_NEW": // only Begin of earlier releases reads what it wrote
		return http.StatusOK, `{"Attributes":` + asJSON(row) + `}`
	}
	return http.StatusOK, "{}"
}

// assignment is a part of an update expression: a name, and a value that may be only for
// a missing attribute, or added to that.
var assignment = regexp.MustCompile(
	`(#?\w+) = (?:if_not_exists\(\w+, (:\w+)\)|(:\w+))(?: \+ (:\w+))?`)

// row returns the row that the update makes of a missing one.
func (u update) row() item {
	row := item{"orderId": u.Key["orderId"], "sk": u.Key["sk"]}
	for _, found := range assignment.FindAllStringSubmatch(u.UpdateExpression, -1) {
		name := cmp.Or(u.ExpressionAttributeNames[found[1]], found[1])
		row[name] = u.ExpressionAttributeValues[cmp.Or(found[4], found[3], found[2])]
	}
	return row
}

func asJSON(value any) string {
	text, _ := json.Marshal(value) // texts and what was JSON before
	return string(text)
}

func unknown(what string) (status int, response string) {
	return http.StatusBadRequest, `{"__type":"com.amazonaws.dynamodb.v20120810#ValidationException","message":` +
		asJSON("unsupported: "+what) + `}`
}

// serveStripe responds to Prepare and Confirm. The id of an intent contains the id of its
// order.
func (b *backends) serveStripe(w http.ResponseWriter, r *http.Request) {
	b.stripeCalls.Add(1)
	path := strings.TrimPrefix(r.URL.Path, "/v1/payment_intents")
	orderID, status, charge := "", "requires_confirmation", "null"
	if id, confirms := strings.CutSuffix(path, "/confirm"); confirms {
		orderID, status, charge = strings.TrimPrefix(id, "/pi_"), "succeeded", `"ch_pretend"`
	} else if path == "" && r.ParseForm() == nil {
		orderID = r.PostForm.Get("metadata[orderId]")
	}
	if r.Method != http.MethodPost || orderID == "" {
		const unsupported = `{"error":{"type":"invalid_request_error","message":"unsupported request"}}`
		http.Error(w, unsupported, http.StatusBadRequest)
		return
	}
	response := fmt.Sprintf(intent, orderID, total, scope, status, charge)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Request-Id", "req_pretend")
	w.Header().Set("Content-Length", strconv.Itoa(len(response)))
	_, _ = io.WriteString(w, response) //nolint:gosec // G705: JSON, and no browser
}

// intent is a PaymentIntent with all the fields that Stripe sends, because the function
// has to parse them (docs.stripe.com/api/payment_intents/object, API version 2023-10-16).
const intent = `{
  "id": "pi_%[1]s", "object": "payment_intent", "amount": %[2]d, "amount_capturable": 0, "amount_details":
  {"tip": {}}, "amount_received": 0, "application": null, "application_fee_amount": null,
  "automatic_payment_methods": {"allow_redirects": "never", "enabled": true}, "canceled_at": null,
  "cancellation_reason": null, "capture_method": "automatic", "client_secret": "pi_%[1]s_secret_pretend",
  "confirmation_method": "automatic", "created": 1700000000, "currency": "usd", "customer": "cus_Bench",
  "description": null, "invoice": null, "last_payment_error": null, "latest_charge": %[5]s, "livemode":
  false, "metadata": { "fingerprint":
  "v1:0000000000000000000000000000000000000000000000000000000000000000", "orderId": "%[1]s", "scope":
  "%[3]s" }, "next_action": null, "on_behalf_of": null, "payment_method": "pm_card_visa",
  "payment_method_configuration_details": {"id": "pmc_pretend", "parent": null}, "payment_method_options":
  { "card": {"installments": null, "mandate_options": null, "network": null, "request_three_d_secure":
  "automatic"}, "link": {"persistent_token": null} }, "payment_method_types": ["card", "link"],
  "processing": null, "receipt_email": null, "review": null, "setup_future_usage": null, "shipping": null,
  "source": null, "statement_descriptor": null, "statement_descriptor_suffix": null, "status": "%[4]s",
  "transfer_data": null, "transfer_group": null
}`
