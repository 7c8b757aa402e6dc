package apigatewaytest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/apigateway"
	"orderonce/adapters/apigateway/apigatewaytest"
)

type function = func(context.Context, []byte) ([]byte, error)

func serve(f function, r *http.Request) *httptest.ResponseRecorder {
	api := apigatewaytest.API{
		Routes: map[string]function{"POST /a": f}, Now: func() time.Time { return time.UnixMilli(1_790_000_000_000) },
	}
	w := httptest.NewRecorder()
	api.ServeHTTP(w, r)
	return w
}

func post(t *testing.T, path, contentType, body string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	return r
}

func TestAnEventHasPayloadFormat2(t *testing.T) {
	t.Parallel()
	r := post(t, "/a?b=1&c=%20", "application/json; charset=utf-8", `{"d":1}`)
	r.Header["X-Many"] = []string{"e", "f"}
	r.Header.Set("Cookie", "g=1; h=2")
	var got events.APIGatewayV2HTTPRequest
	serve(func(_ context.Context, event []byte) ([]byte, error) { return nil, json.Unmarshal(event, &got) }, r)
	want := events.APIGatewayV2HTTPRequest{
		Version: "2.0", RouteKey: "POST /a", RawPath: "/a", RawQueryString: "b=1&c=%20", Cookies: []string{"g=1", "h=2"},
		Headers: map[string]string{
			"host": "example.com", "content-type": "application/json; charset=utf-8", "x-many": "e,f",
		},
		RequestContext: events.APIGatewayV2HTTPRequestContext{
			RouteKey: "POST /a", Stage: "$default", TimeEpoch: 1_790_000_000_000,
			HTTP: events.APIGatewayV2HTTPRequestContextHTTPDescription{
				Method: "POST", Path: "/a", Protocol: "HTTP/1.1", SourceIP: "127.0.0.1",
			},
		},
		Body: `{"d":1}`,
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

func TestAHandlerBehindTheAPIGetsEveryBody(t *testing.T) {
	t.Parallel()
	echo := apigateway.Handle(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "1"})
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.Copy(w, r.Body)
	}))
	invoke := func(ctx context.Context, payload []byte) ([]byte, error) {
		var e events.APIGatewayV2HTTPRequest
		if err := json.Unmarshal(payload, &e); err != nil {
			return nil, err
		}
		out, err := echo(ctx, e)
		text, marshalErr := json.Marshal(out)
		return text, errors.Join(err, marshalErr)
	}
	for contentType, body := range map[string]string{
		"application/json": `{"name":"été"}`, "text/plain": "text", "application/octet-stream": "\xff\x00\xfe",
		"application/problem+json": "{}", "": "no type",
	} {
		w := serve(invoke, post(t, "/a", contentType, body))
		if w.Code != http.StatusAccepted || w.Body.String() != body || w.Header().Get("Set-Cookie") != "a=1" {
			t.Errorf("%s: got %d, %q, %v, want 202, %q and a cookie", contentType, w.Code, w.Body, w.Header(), body)
		}
	}
}

func TestTheAPIAnswersWhatAFunctionCannot(t *testing.T) {
	t.Parallel()
	returns := func(out string, err error) function {
		return func(context.Context, []byte) ([]byte, error) { return []byte(out), err }
	}
	never := func(context.Context, []byte) ([]byte, error) { t.Error("the function was invoked"); return nil, nil }
	const internal = `{"message":"Internal Server Error"}`
	for claim, tt := range map[string]struct {
		function
		request *http.Request
		status  int
		body    string
	}{
		"no such route":             {never, post(t, "/b", "", ""), 404, `{"message":"Not Found"}`},
		"a body of more than 10 MB": {never, post(t, "/a", "", strings.Repeat("a", 10<<20+1)), 413, `{"message":"Request Entity Too Large"}`},
		"an error":                  {returns("", errors.New("x")), post(t, "/a", "", ""), 500, internal},
		"an invalid base64 body":    {returns(`{"statusCode":200,"isBase64Encoded":true,"body":"?"}`, nil), post(t, "/a", "", ""), 500, internal},
		"no status":                 {returns(`{"a":1}`, nil), post(t, "/a", "", ""), 200, `{"a":1}`},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			if w := serve(tt.function, tt.request); w.Code != tt.status || w.Body.String() != tt.body {
				t.Errorf("got %d %s, want %d %s", w.Code, w.Body, tt.status, tt.body)
			}
		})
	}
}

func TestAFunctionHasThirtySeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		w := serve(func(ctx context.Context, _ []byte) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, post(t, "/a", "", ""))
		if took := time.Since(began); w.Code != http.StatusServiceUnavailable || took != 30*time.Second {
			t.Errorf("got %d after %v, want 503 after 30s", w.Code, took)
		}
	})
}

func TestServe(t *testing.T) {
	t.Parallel()
	server, err := apigatewaytest.Serve(&apigatewaytest.API{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.Post(server.URL+"/a", "", bytes.NewReader(nil)) //nolint:noctx // the server answers at once
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(response.Body.Close(), server.Close()); err != nil || response.StatusCode != http.StatusNotFound {
		t.Errorf("got %d, %v, want 404", response.StatusCode, err)
	}
}
