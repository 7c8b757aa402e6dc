package lambdatest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// maxResponse is Lambda's limit of a buffered response: 6 MB and, in its own error
// message, 100 bytes more.
const maxResponse = 6<<20 + 100

// api returns the Runtime API of the instance's process.
func (in *instance) api() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", in.next)
	const invocation = "POST /2018-06-01/runtime/invocation/{id}/"
	mux.HandleFunc(invocation+"response", func(w http.ResponseWriter, r *http.Request) {
		in.finish(w, r, readResponse(r.Body))
	})
	mux.HandleFunc(invocation+"error", func(w http.ResponseWriter, r *http.Request) {
		in.finish(w, r, result{err: readError(r.Body)})
	})
	mux.HandleFunc("POST /2018-06-01/runtime/init/error", in.initError)
	return mux
}

// initError accepts a report before the first request for an invocation. The states of a
// runtime are those of Lambda's Runtime Interface Emulator.
func (in *instance) initError(w http.ResponseWriter, r *http.Request) {
	if !in.started.Load() {
		reported := readError(r.Body)
		in.reported.CompareAndSwap(nil, reported)
		select {
		case in.initFail <- reported:
			w.WriteHeader(http.StatusAccepted)
			return
		default: // a second report
		}
	}
	writeError(w, http.StatusForbidden, "InvalidStateTransition")
}

// next waits for an invocation. The request ends with the process and with the host.
func (in *instance) next(w http.ResponseWriter, r *http.Request) {
	in.started.Store(true)
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
func (in *instance) finish(w http.ResponseWriter, r *http.Request, got result) {
	call := in.current.Load()
	if call == nil || call.id != r.PathValue("id") || !in.current.CompareAndSwap(call, nil) {
		in.rejectResult(w, r.PathValue("id"))
		return
	}
	in.last.Store(call)
	call.result <- got
	if got.errorType != "" {
		writeError(w, got.status, got.errorType)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// rejectResult distinguishes a second result of the latest invocation from a result of
// another one.
func (in *instance) rejectResult(w http.ResponseWriter, id string) {
	if call := in.last.Load(); call != nil && call.id == id {
		writeError(w, http.StatusForbidden, "InvalidStateTransition")
		return
	}
	writeError(w, http.StatusBadRequest, "InvalidRequestID")
}

// readResponse reads one byte more than the limit, to detect a larger response.
func readResponse(body io.Reader) result {
	data, err := io.ReadAll(io.LimitReader(body, maxResponse+1))
	switch {
	case err != nil:
		return result{
			err:    &FunctionError{Type: "Runtime.TruncatedResponse", Message: err.Error()},
			status: http.StatusBadRequest, errorType: "TruncatedHTTPRequest",
		}
	case len(data) > maxResponse:
		return result{
			err: &FunctionError{
				Type: "Function.ResponseSizeTooLarge",
				Message: fmt.Sprintf(
					"Response payload size exceeded maximum allowed payload size (%d bytes).", maxResponse,
				),
			},
			status: http.StatusRequestEntityTooLarge, errorType: "RequestEntityTooLarge",
		}
	}
	return result{body: data}
}

func readError(body io.Reader) *FunctionError {
	var reported FunctionError
	if err := json.NewDecoder(io.LimitReader(body, maxResponse)).Decode(&reported); err != nil {
		return &FunctionError{Type: "Runtime.Unknown", Message: fmt.Sprintf("unreadable error report: %v", err)}
	}
	reported.Type = cmp.Or(reported.Type, "Runtime.Unknown")
	return &reported
}

func writeError(w http.ResponseWriter, status int, errorType string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"errorType":%q,"errorMessage":%q}`, errorType, http.StatusText(status))
}
