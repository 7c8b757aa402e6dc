package main

import (
	"cmp"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// total is the amount of every order in cents: a Confirm request has no amount, and the
// canned Stripe has no state.
const total = 1999

const (
	scope      = "bench"
	pretendKey = "sk_test_pretend"
)

// backends are the canned DynamoDB and the canned Stripe, each over HTTP and over TLS.
// They count calls. While settled is set, every order is paid already.
type backends struct {
	dynamodb, stripe service
	settled          atomic.Bool
	authorities      string                 // a file: those of the system, and the certificate of the servers
	record           atomic.Pointer[[]call] // what was called, unless nil

	serial int // of the last order that event made
}

type service struct {
	plain, tls *httptest.Server
	calls      atomic.Int64
	latency    atomic.Int64 // nanoseconds before each response
}

// certificate is the name of a file with the certificate of these servers alone.
const certificate = "certificate.pem"

func (s *service) url(encrypted bool) string {
	if encrypted {
		return s.tls.URL
	}
	return s.plain.URL
}

// call is one request, for the floor to repeat.
type call struct {
	Service string // dynamodb or stripe
	Path    string
	Header  http.Header
	Body    string
}

func (b *backends) calls() int64 { return b.dynamodb.calls.Load() + b.stripe.calls.Load() }

// serveBackends starts the servers, and writes certificates to the folder.
func serveBackends(folder string) (*backends, error) {
	b := &backends{authorities: filepath.Join(folder, "authorities.pem")}
	b.serve(&b.dynamodb, "dynamodb", b.serveDynamoDB)
	b.serve(&b.stripe, "stripe", b.serveStripe)
	// httptest has one certificate for all servers.
	own := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: b.stripe.tls.Certificate().Raw})
	all, _ := os.ReadFile("/etc/ssl/certs/ca-certificates.crt") // as long as Lambda's; other systems lack it
	//nolint:gosec // G703: the folder of the caller
	err := errors.Join(os.WriteFile(filepath.Join(folder, certificate), own, 0o600),
		os.WriteFile(b.authorities, append(all, own...), 0o600))
	return b, err
}

// serve starts the servers of one service. A response waits for the latency.
func (b *backends) serve(s *service, name string, respond func(*http.Request, []byte) (int, string)) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.calls.Add(1)
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the function closed the connection
		}
		if all := b.record.Load(); all != nil {
			*all = append(*all, call{name, r.URL.Path, r.Header, string(body)})
		}
		status, response := respond(r, body)
		time.Sleep(time.Duration(s.latency.Load()))
		w.Header().Set("Content-Length", strconv.Itoa(len(response)))
		if name == "dynamodb" {
			w.Header().Set("Content-Type", "application/x-amz-json-1.0")
			checksum := crc32.ChecksumIEEE([]byte(response)) // the SDK verifies it
			w.Header().Set("X-Amz-Crc32", strconv.FormatUint(uint64(checksum), 10))
		} else {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Request-Id", "req_pretend")
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, response)
	})
	s.plain, s.tls = httptest.NewServer(handler), httptest.NewTLSServer(handler)
}

// Close stops the servers.
func (b *backends) Close() error {
	for _, s := range []*service{&b.dynamodb, &b.stripe} {
		for _, server := range []*httptest.Server{s.plain, s.tls} {
			server.CloseClientConnections()
			server.Close()
		}
	}
	return nil
}

// item is the attributes of an item, or the values of an expression.
type item map[string]json.RawMessage

// write is the part of an UpdateItem or PutItem request that is read here.
type write struct {
	Key, Item                 item
	UpdateExpression          string
	ExpressionAttributeNames  map[string]string
	ExpressionAttributeValues item
	ReturnValues              string
}

// serveDynamoDB responds to Begin, Bind and Finish, and to what other handlers write,
// from the request alone. Anything else is an error, so that an order that is not settled
// is noticed.
func (b *backends) serveDynamoDB(r *http.Request, body []byte) (status int, response string) {
	var w write
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	err := json.Unmarshal(body, &w)
	switch {
	case err != nil:
		return unknown(err.Error())
	case operation == "TransactWriteItems": // Finish, which reads nothing of the response
		return http.StatusOK, "{}"
	case operation == "PutItem":
		return b.respondToPut(w.Item)
	case operation != "UpdateItem":
		return unknown(operation)
	case w.Key["id"] != nil: // of another handler, which reads nothing of the response
		return http.StatusOK, "{}"
	}
	return b.respondToUpdate(w)
}

// respondToPut puts the record of another handler, or returns it as that of a paid order.
func (b *backends) respondToPut(record item) (status int, response string) {
	if !b.settled.Load() {
		return http.StatusOK, "{}"
	}
	record["status"] = json.RawMessage(`{"S":"COMPLETED"}`)
	record["data"] = json.RawMessage(`{"M":{"status":{"S":"PAID"}}}`)
	return conditionFailed(record)
}

func conditionFailed(row item) (status int, response string) {
	return http.StatusBadRequest,
		`{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException",` +
			`"message":"The conditional request failed","Item":` + asJSON(row) + `}`
}

func (b *backends) respondToUpdate(u write) (status int, response string) {
	row := u.row()
	begins := row["leaseUntil"] != nil
	switch {
	case !begins && row["intentId"] == nil: // neither Begin nor Bind
		return unknown(u.UpdateExpression)
	case begins && b.settled.Load():
		for _, name := range []string{"owner", "leaseUntil", "openShard", "dueAt"} {
			delete(row, name)
		}
		row["status"], row["seq"] = json.RawMessage(`{"S":"paid"}`), json.RawMessage(`{"N":"1"}`)
		row["intentId"] = json.RawMessage(`{"S":"pi_settled"}`)
		return conditionFailed(row)
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
func (u write) row() item {
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

// serveStripe responds to Prepare and Confirm, and to the creation of a confirmed intent.
// The id of an intent contains the id of its order.
func (b *backends) serveStripe(r *http.Request, body []byte) (status int, response string) {
	path := strings.TrimPrefix(r.URL.Path, "/v1/payment_intents")
	form, _ := url.ParseQuery(string(body))
	orderID, confirms := strings.CutSuffix(strings.TrimPrefix(path, "/pi_"), "/confirm")
	if path == "" {
		orderID, confirms = form.Get("metadata[orderId]"), form.Get("confirm") == "true"
	}
	if r.Method != http.MethodPost || orderID == "" || path != "" && !confirms {
		return http.StatusBadRequest, `{"error":{"type":"invalid_request_error","message":"unsupported request"}}`
	}
	if confirms {
		return http.StatusOK, fmt.Sprintf(intent, orderID, total, scope, "succeeded", `"ch_pretend"`)
	}
	return http.StatusOK, fmt.Sprintf(intent, orderID, total, scope, "requires_confirmation", "null")
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
