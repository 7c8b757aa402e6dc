package lambdatest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// maxReport bounds what is read of an error report.
const maxReport = 1 << 20

func (in *instance) api() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", in.next)
	const invocation = "POST /2018-06-01/runtime/invocation/{id}/"
	mux.HandleFunc(invocation+"response", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		in.finish(w, r, result{body, err})
	})
	mux.HandleFunc(invocation+"error", func(w http.ResponseWriter, r *http.Request) {
		in.finish(w, r, result{err: readError(r.Body)})
	})
	mux.HandleFunc("POST /2018-06-01/runtime/init/error", func(w http.ResponseWriter, r *http.Request) {
		in.reported.Store(readError(r.Body))
		w.WriteHeader(http.StatusAccepted)
	})
	return mux
}

// next waits for an invocation. The request ends with the process and with the host.
func (in *instance) next(w http.ResponseWriter, r *http.Request) {
	select {
	case in.ready <- struct{}{}:
	case <-r.Context().Done():
		return
	}
	select {
	case call := <-in.work:
		in.current.Store(call)
		header := w.Header()
		header.Set("Content-Type", "application/json")
		header.Set("Lambda-Runtime-Aws-Request-Id", call.id)
		header.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(call.deadline.UnixMilli(), 10))
		header.Set(
			"Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:us-east-1:123456789012:function:"+functionName,
		)
		header.Set("Lambda-Runtime-Trace-Id", fmt.Sprintf("Root=1-%08x-%024x;Parent=%016x;Sampled=0",
			call.began.Unix(), call.serial, call.serial))
		_, _ = w.Write(call.payload) // reap sees a process that ended meanwhile
	case <-r.Context().Done():
	}
}

// finish ends the current invocation, before the process gets the response and may exit.
// A result of another invocation, or a second one, is refused.
func (in *instance) finish(w http.ResponseWriter, r *http.Request, got result) {
	call := in.current.Load()
	if call == nil || call.id != r.PathValue("id") || !in.current.CompareAndSwap(call, nil) {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	call.result <- got
	w.WriteHeader(http.StatusAccepted)
}

func readError(body io.Reader) *FunctionError {
	var reported FunctionError
	if err := json.NewDecoder(io.LimitReader(body, maxReport)).Decode(&reported); err != nil {
		return &FunctionError{Type: "Runtime.Unknown", Message: fmt.Sprintf("unreadable error report: %v", err)}
	}
	reported.Type = cmp.Or(reported.Type, "Runtime.Unknown")
	return &reported
}
