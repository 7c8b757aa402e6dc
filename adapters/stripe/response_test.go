package stripe_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/stripe"
	"orderonce/domain/order"
)

// body is a PaymentIntent as Stripe sends it: far more than is read.
func body(status, lastError string) string { return charged(status, lastError, none) }

// charged is one whose latest charge is in the JSON too.
func charged(status, lastError, charge string) string {
	return `{"id":"pi_3Pretend","object":"payment_intent","amount":2500,"amount_received":0,"currency":"eur","livemode":false,` +
		`"client_secret":"pi_3Pretend_secret_canary","customer":"cus_canary","payment_method":"pm_canary","status":"` + status + `",` +
		`"metadata":{"orderId":"ORD-1","scope":"test","fingerprint":"v1:0"},"last_payment_error":` + lastError + `,` +
		`"latest_charge":` + charge + `,"next_action":null}`
}

func failure(rest string) string { return `{"error":{"message":"m","doc_url":"d",` + rest + `}}` }

// failureOf is an error of Stripe's with this message.
func failureOf(tb testing.TB, message string) string {
	tb.Helper()
	text, err := json.Marshal(message)
	if err != nil {
		tb.Fatal(err)
	}
	return `{"error":{"type":"invalid_request_error","message":` + string(text) + `}}`
}

func in(rest, intent string) string { return failure(rest + `,"payment_intent":` + intent) }

const (
	none     = "null"
	declined = `{"type":"card_error","code":"card_declined","decline_code":"insufficient_funds","message":"m",` +
		`"payment_method":{"id":"pm_canary","object":"payment_method","card":{"last4":"4242"}}}`
	uncoded = `{"type":"card_error","decline_code":"do_not_honor","message":"m"}`
	typed   = `{"type":"api_error","message":"m"}`
	charge  = `"ch_3Pretend"`
	wanted  = `{"id":"ch_3Pretend","object":"charge","failure_code":"authentication_required","outcome":{` +
		`"network_status":"declined_by_network","reason":"authentication_required","type":"issuer_declined"},"status":"failed"}`
	unwatched = `{"type":"card_error","code":"authentication_required","decline_code":"authentication_required","message":"m"}`
	card      = `"type":"card_error","code":"card_declined","decline_code":"generic_decline"`
	noCode    = `"type":"card_error"`
	settled   = `"type":"invalid_request_error","code":"payment_intent_unexpected_state"`
	invalid   = `"type":"invalid_request_error"`
	noSuch    = `"type":"invalid_request_error","code":"resource_missing"`
	mismatch  = `"type":"idempotency_error"`
	twin      = `"type":"idempotency_error","code":"idempotency_key_in_use"`
	broken    = `"type":"api_error"`
)

// said is one answer of Stripe's.
type said struct {
	status   int
	replayed bool
	body     string
}

func (s said) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Request-Id", "req_pretend")
	if s.replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	w.WriteHeader(s.status)
	_, _ = io.WriteString(w, s.body)
}

// respond is the response without a network.
func (s said) respond(r *http.Request) (*http.Response, error) {
	header := http.Header{"Request-Id": {"req_pretend"}}
	if s.replayed {
		header.Set("Idempotent-Replayed", "true")
	}
	return &http.Response{StatusCode: s.status, Header: header, Body: io.NopCloser(strings.NewReader(s.body)), Request: r}, nil
}

// calls are the three methods of the port, by name.
func calls(tb testing.TB, p *stripe.Payments) map[string]func(context.Context) (order.Intent, error) {
	tb.Helper()
	o := orderOf(tb, "pm_card_visa")
	return map[string]func(context.Context) (order.Intent, error){
		"prepare": func(ctx context.Context) (order.Intent, error) {
			return p.Prepare(ctx, o, order.PrepareKey(scope, o.ID()))
		},
		"confirm": func(ctx context.Context) (order.Intent, error) {
			return p.Confirm(ctx, intentID, order.ConfirmKey(scope, o.ID(), 1))
		},
		"read": func(ctx context.Context) (order.Intent, error) { return p.Read(ctx, intentID) },
	}
}

const every = "prepare confirm read"

func TestAnswersAreIntents(t *testing.T) {
	t.Parallel()
	funds := order.Failure{Code: "card_declined", DeclineCode: "insufficient_funds"}
	unexplained := order.Failure{Code: "unexplained"}
	unwatchedFailure := order.Failure{Code: "authentication_required", DeclineCode: "authentication_required"}
	tests := map[string]struct {
		calls   string
		said    said
		state   order.IntentState
		failure order.Failure
	}{
		"created":              {every, said{200, false, body("requires_confirmation", none)}, order.NeedsConfirmation, order.Failure{}},
		"created without card": {every, said{200, false, body("requires_payment_method", none)}, order.NeedsMethod, order.Failure{}},
		"paid":                 {every, said{200, false, body("succeeded", none)}, order.Succeeded, order.Failure{}},
		"the bank takes days":  {every, said{200, false, body("processing", none)}, order.Processing, order.Failure{}},
		"the bank asks":        {every, said{200, false, body("requires_action", none)}, order.NeedsAction, order.Failure{}},
		"canceled":             {every, said{200, false, body("canceled", none)}, order.IntentCanceled, order.Failure{}},
		"declined, read later": {"read", said{200, false, body("requires_payment_method", declined)}, order.NeedsMethod, funds},
		"paid in the end":      {"read", said{200, false, body("succeeded", declined)}, order.Succeeded, funds},
		"a replayed creation":  {"prepare", said{200, true, body("requires_confirmation", none)}, order.NeedsConfirmation, order.Failure{}},
		"a replayed success":   {"confirm", said{200, true, body("succeeded", none)}, order.Succeeded, order.Failure{}},
		"declined":             {every, said{402, false, in(card, body("requires_payment_method", declined))}, order.NeedsMethod, funds},
		"settled before":       {"confirm", said{400, false, in(settled, body("succeeded", none))}, order.Succeeded, order.Failure{}},
		"declined before":      {"confirm", said{400, false, in(settled, body("requires_payment_method", declined))}, order.NeedsMethod, funds},
		"a replayed refusal of a paid intent": {
			"confirm", said{400, true, in(settled, body("succeeded", none))}, order.Succeeded, order.Failure{},
		},
		"the bank wants the customer": {
			"confirm", said{402, false, in(card, body("requires_payment_method", unwatched))}, order.NeedsMethod, unwatchedFailure,
		},
		"a decline told by the error alone": {
			"confirm",
			said{402, false, in(card, body("requires_payment_method", none))},
			order.NeedsMethod,
			order.Failure{Code: "card_declined", DeclineCode: "generic_decline"},
		},
		"an error without a code is told by its type": {
			every, said{200, false, body("requires_payment_method", typed)}, order.NeedsMethod, order.Failure{Code: "api_error"},
		},
		"the issuer's reason stays beside a type": {
			every,
			said{200, false, body("requires_payment_method", uncoded)},
			order.NeedsMethod,
			order.Failure{Code: "card_error", DeclineCode: "do_not_honor"},
		},
		"an error that says nothing is one all the same": {
			"read", said{200, false, body("requires_payment_method", "{}")}, order.NeedsMethod, unexplained,
		},
		"an error that an update has cleared is told by the charge": {
			every, said{200, false, charged("requires_payment_method", none, wanted)}, order.NeedsMethod, unwatchedFailure,
		},
		"a charge that says nothing is a failure all the same": {
			every, said{200, false, charged("requires_payment_method", none, `{"id":"ch_3","outcome":null}`)}, order.NeedsMethod, unexplained,
		},
		"the charge of a paid intent is no failure": {
			every, said{200, false, charged("succeeded", none, charge)}, order.Succeeded, order.Failure{},
		},
		"the last error says more than the charge": {
			every, said{200, false, charged("requires_payment_method", declined, charge)}, order.NeedsMethod, funds,
		},
		"a decline told by a type alone": {
			every,
			said{402, false, in(noCode, body("requires_payment_method", none))},
			order.NeedsMethod,
			order.Failure{Code: "card_error"},
		},
		"the error around an intent says more than its charge": {
			"confirm",
			said{402, false, in(card, charged("requires_payment_method", none, charge))},
			order.NeedsMethod,
			order.Failure{Code: "card_declined", DeclineCode: "generic_decline"},
		},
		"a 402 that says nothing is a decline all the same": {
			"confirm", said{402, false, in(`"param":""`, body("requires_payment_method", none))}, order.NeedsMethod, unexplained,
		},
		"a refused confirmation says nothing of a payment": {
			"confirm", said{400, false, in(settled, body("requires_payment_method", none))}, order.NeedsMethod, order.Failure{},
		},
	}
	for name, tt := range tests {
		for call := range strings.FieldsSeq(tt.calls) {
			t.Run(name+"/"+call, func(t *testing.T) {
				t.Parallel()
				got, err := calls(t, answering(t, tt.said.ServeHTTP))[call](t.Context())
				want := order.Intent{
					ID: intentID, State: tt.state, Total: order.Money{Amount: 2500, Currency: "eur"},
					OrderID: "ORD-1", Scope: "test", Failure: tt.failure, Fingerprint: "v1:0", Mode: order.TestMode,
				}
				if diff := cmp.Diff(got, want); err != nil || diff != "" {
					t.Errorf("error %v, intent (-got +want):\n%s", err, diff)
				}
			})
		}
	}
}

func TestAnswersAreTroubles(t *testing.T) {
	t.Parallel()
	paid, waiting := body("succeeded", none), body("requires_confirmation", none)
	another := strings.Replace(paid, "pi_3Pretend", "pi_4", 1)
	refused := in(card, body("requires_payment_method", declined))
	type row struct {
		calls string
		said  said
		want  order.ErrorKind
	}
	tests := map[string]row{
		"a twin is running":                       {every, said{409, false, failure(twin)}, order.Unavailable},
		"a conflict":                              {every, said{409, false, failure(invalid)}, order.Unavailable},
		"too many requests":                       {every, said{429, false, failure(invalid + `,"code":"rate_limit"`)}, order.Unavailable},
		"a lock, and the intent with it":          {"confirm", said{429, false, in(`"code":"lock_timeout"`, waiting)}, order.Unavailable},
		"unavailable":                             {every, said{503, false, failure(broken)}, order.Unavailable},
		"a server error":                          {every, said{500, false, failure(broken)}, order.Unknown},
		"a server error with a paid intent":       {"confirm", said{500, false, in(broken, paid)}, order.Unknown},
		"a gateway's time-out":                    {every, said{504, false, failure(broken)}, order.Unknown},
		"somebody behind Stripe failed":           {every, said{424, false, failure(broken)}, order.Unknown},
		"a page of a proxy":                       {every, said{502, false, "<html><body>Bad Gateway</body></html>"}, order.Unknown},
		"a proxy's page that wants a log-in":      {every, said{403, false, "<html>"}, order.Unknown},
		"nothing":                                 {every, said{200, false, ""}, order.Unknown},
		"no JSON":                                 {every, said{200, false, "ok"}, order.Unknown},
		"no object":                               {every, said{200, false, "[]"}, order.Unknown},
		"null":                                    {every, said{200, false, "null"}, order.Unknown},
		"half an intent":                          {every, said{200, false, paid[:len(paid)/2]}, order.Unknown},
		"two intents":                             {every, said{200, false, paid + paid}, order.Unknown},
		"a text for an amount":                    {every, said{200, false, strings.Replace(paid, "2500", `"2500"`, 1)}, order.Unknown},
		"a fraction for an amount":                {every, said{200, false, strings.Replace(paid, "2500", "2500.5", 1)}, order.Unknown},
		"an intent without an id":                 {every, said{200, false, strings.Replace(paid, `"pi_3Pretend"`, `""`, 1)}, order.Unknown},
		"another intent":                          {"confirm read", said{200, false, another}, order.Unknown},
		"an intent in a status to come":           {every, said{200, false, body("requires_capture", none)}, order.Unknown},
		"a redirect":                              {every, said{302, false, paid}, order.Unknown},
		"accepted":                                {every, said{202, false, paid}, order.Unknown},
		"an error that is none":                   {every, said{400, false, paid}, order.Unknown},
		"an error of wrong types":                 {every, said{400, false, `{"error":{"message":5}}`}, order.Unknown},
		"an error that is a text":                 {every, said{400, false, `{"error":"no"}`}, order.Unknown},
		"a stored server error":                   {"prepare confirm", said{500, true, failure(broken)}, order.Replayed},
		"a stored unavailability":                 {"prepare confirm", said{503, true, failure(broken)}, order.Replayed},
		"a stored refusal":                        {"prepare confirm", said{400, true, failure(invalid)}, order.Replayed},
		"a stored decline without its intent":     {"prepare confirm", said{402, true, failure(card)}, order.Replayed},
		"a stored decline of a creation":          {"prepare", said{402, true, refused}, order.Replayed},
		"half of a replayed success":              {"confirm", said{200, true, paid[:len(paid)/2]}, order.Unknown},
		"another request has the key":             {"prepare confirm", said{400, false, failure(mismatch)}, order.KeyReused},
		"no such key":                             {every, said{401, false, failure(invalid)}, order.Misconfigured},
		"a restricted key":                        {every, said{403, false, failure(invalid)}, order.Misconfigured},
		"the intent is elsewhere":                 {"confirm read", said{404, false, failure(noSuch)}, order.Misconfigured},
		"this is not Stripe":                      {every, said{404, false, failure(invalid)}, order.Misconfigured},
		"no such customer":                        {"prepare", said{404, false, failure(noSuch)}, order.Refused},
		"no such payment method":                  {"prepare confirm", said{400, false, failure(noSuch)}, order.Refused},
		"a decline without its intent":            {"prepare confirm", said{402, false, failure(card)}, order.Refused},
		"a decline of another intent":             {"confirm", said{402, false, in(card, another)}, order.Refused},
		"a decline with an intent's id only":      {"confirm", said{402, false, in(card, `"pi_3Pretend"`)}, order.Refused},
		"another refusal with the intent with it": {"confirm", said{400, false, in(`"code":"amount_too_small"`, waiting)}, order.Refused},

		// Whatever is wrong with a question about an intent that Stripe gave us, it is not the order.
		"a question that is refused":               {"read", said{400, false, failure(invalid)}, order.Misconfigured},
		"a question about something missing":       {"read", said{400, false, failure(noSuch)}, order.Misconfigured},
		"a question with an unknown parameter":     {"read", said{400, false, failure(`"code":"parameter_unknown"`)}, order.Misconfigured},
		"a question that is answered by a decline": {"read", said{402, false, failure(card)}, order.Misconfigured},
		"a question that must not be asked":        {"read", said{405, false, failure(invalid)}, order.Misconfigured},
		"a question about what is gone":            {"read", said{410, false, failure(invalid)}, order.Misconfigured},
		"a question that reuses a key":             {"read", said{400, false, failure(mismatch)}, order.Misconfigured},

		// What is said of a payment is a decline, unless it is said of us.
		"a declined payment of an account that may not charge": {
			"confirm", said{402, false, in(`"code":"testmode_charges_only"`, body("requires_confirmation", none))}, order.Misconfigured,
		},
		"a stored refusal that is our fault": {"prepare confirm", said{400, true, failure(`"code":"livemode_mismatch"`)}, order.Replayed},
		"a server error that blames us":      {every, said{500, false, failure(`"code":"api_key_expired"`)}, order.Unknown},
	}
	for code := range strings.FieldsSeq(codesMisconfigured) {
		for _, status := range []int{400, 401, 403, 404} {
			tests[code+" with "+strconv.Itoa(status)] = row{
				every, said{status, false, failure(invalid + `,"code":"` + code + `"`)}, order.Misconfigured,
			}
		}
	}
	for name, tt := range tests {
		for call := range strings.FieldsSeq(tt.calls) {
			t.Run(name+"/"+call, func(t *testing.T) {
				t.Parallel()
				got, err := calls(t, answering(t, tt.said.ServeHTTP))[call](t.Context())
				if trouble := kindOf(t, err); trouble != tt.want || got != (order.Intent{}) {
					t.Errorf("got %v with %q: %v, want %q", got, trouble, err, tt.want)
				}
				if err != nil && strings.Contains(err.Error(), "nil") {
					t.Errorf("%q does not say why", err)
				}
			})
		}
	}
}

func TestAReplayedConfirmationIsReadAgain(t *testing.T) {
	t.Parallel()
	tests := map[string]said{
		"a decline":     {402, true, in(card, body("requires_payment_method", declined))},
		"a refusal":     {400, true, in(settled, body("requires_payment_method", declined))},
		"a slow bank":   {200, true, body("processing", none)},
		"a cancelation": {400, true, in(settled, body("canceled", none))},
	}
	for name, old := range tests {
		t.Run(name+" that the customer has paid since", func(t *testing.T) {
			t.Parallel()
			p := answering(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					old = said{200, false, body("succeeded", declined)}
				}
				old.ServeHTTP(w, r)
			})
			got, err := calls(t, p)["confirm"](t.Context())
			if err != nil || got.State != order.Succeeded {
				t.Errorf("got %v, %v, want the intent as it is now", got, err)
			}
		})
	}
}

// TestErrorsKeepSecrets sends back everything that must not reach a log, wherever Stripe or a proxy might put it.
func TestErrorsKeepSecrets(t *testing.T) {
	t.Parallel()
	canaries := []string{
		pretendKey, "sk_test_*******canary", "rk_live_canary", "pk_test_canary", "cus_canary", "cus_pretend", "pm_canary", "pm_card_visa",
		"card_canary", "card_1Canary", "src_1Canary", "ba_1Canary", "tok_canary", "btok_1Canary", "seti_1Canary_secret_canary",
		"pi_3Pretend_secret_canary", "whsec_Canary1", "ephkey_1Canary",
	}
	all := strings.Join(canaries, "', '")
	message := `"message":"No such thing: '` + all + `' on account acct_1 (pi_3Pretend, req_1), param payment_method_data."`
	intent := body("requires_capture", declined)
	answers := []said{
		{200, false, intent},
		{200, false, all},
		{200, false, `{"id":"pi_3Pretend","status":"` + all + `"}`},
		{302, false, intent},
		{400, false, intent},
		{400, false, all},
		{400, false, `{"error":{` + message + `,"type":"idempotency_error","payment_method":{"id":"pm_canary"}}}`},
		{401, false, `{"error":{` + message + `}}`},
		{402, false, `{"error":{` + message + `,"payment_intent":` + intent + `}}`},
		{404, false, `{"error":{` + message + `,"source":{"id":"card_canary"}}}`},
		{500, true, `{"error":{` + message + `}}`},
		{502, false, "<html>" + all},
	}
	canaries = append(canaries, "last4")
	for _, answer := range answers {
		for name, call := range calls(t, answering(t, answer.ServeHTTP)) {
			_, err := call(t.Context())
			if err == nil {
				t.Errorf("%s: %d %.80s is no error", name, answer.status, answer.body)
				continue
			}
			for _, canary := range canaries {
				if strings.Contains(err.Error(), canary) {
					t.Errorf("%s: %q is in %q", name, canary, err)
				}
			}
			if strings.Contains(answer.body, `"message":"No such`) && !strings.Contains(err.Error(),
				"on account acct_1 (pi_3Pretend, req_1), param payment_method_data. (request req_pretend)") {
				t.Errorf("%s: %q has lost what a person needs", name, err)
			}
		}
	}
}

// TestNothingIsPrinted runs this program again: the library prints to the process's own outputs, and prints whole answers.
func TestNothingIsPrinted(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^(TestAnswersAre|TestErrorsKeep)").CombinedOutput()
	if err != nil || strings.Contains(string(out), "canary") || strings.Contains(string(out), "[ERROR]") {
		t.Errorf("error %v, printed:\n%s", err, out)
	}
}

// FuzzAnswer holds for any bytes: no panic, no intent that could not be used, no secret in an error.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []said{
		{200, false, body("succeeded", none)},
		{402, false, in(card, body("requires_payment_method", declined))},
		{400, true, in(settled, body("succeeded", none))},
		{409, false, failure(twin)},
		{500, true, failure(broken)},
		{404, false, failure(noSuch)},
		{200, false, "<html>"},
	} {
		f.Add(seed.status, strconv.FormatBool(seed.replayed), seed.body)
	}
	f.Fuzz(func(t *testing.T, status int, replayed, body string) {
		p := open(t, "", roundTrip(func(r *http.Request) (*http.Response, error) {
			header := http.Header{"Idempotent-Replayed": {replayed}, "Request-Id": {"req_pretend"}}
			return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
		}))
		for name, call := range calls(t, p) {
			got, err := call(t.Context())
			switch trouble := kindOf(t, err); {
			case err == nil && (got.ID == "" || got.State == "" || name != "prepare" && got.ID != intentID):
				t.Errorf("%s: got the intent %+v", name, got)
			case err != nil && (trouble == "" || got != (order.Intent{})):
				t.Errorf("%s: got %+v and %v", name, got, err)
			case err != nil && strings.Contains(err.Error(), pretendKey):
				t.Errorf("%s: the key is in %q", name, err)
			}
		}
	})
}
