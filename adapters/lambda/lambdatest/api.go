package lambdatest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// maxResponse is Lambda's limit of a buffered response: 6 MB and, by its own error message, 100 bytes.
const maxResponse = 6<<20 + 100

// api is the Runtime API as the instance's process sees it.
func (in *instance) api() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", in.next)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/response", func(w http.ResponseWriter, r *http.Request) {
		in.settle(w, r, readResponse(r.Body))
	})
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/error", func(w http.ResponseWriter, r *http.Request) {
		in.settle(w, r, answer{err: readError(r.Body)})
	})
	mux.HandleFunc("POST /2018-06-01/runtime/init/error", in.initError)
	return mux
}

// initError belongs before the first request for work. The runtime's states are those of Lambda's own Runtime Interface Emulator.
func (in *instance) initError(w http.ResponseWriter, r *http.Request) {
	if !in.asked.Load() {
		reported := readError(r.Body)
		in.reported.CompareAndSwap(nil, reported)
		select {
		case in.initFail <- reported:
			w.WriteHeader(http.StatusAccepted)
			return
		default: // a second report
		}
	}
	refuse(w, http.StatusForbidden, "InvalidStateTransition")
}

// next blocks until there is work; the end of the process or of the host ends the request.
func (in *instance) next(w http.ResponseWriter, r *http.Request) {
	in.asked.Store(true)
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
		header.Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:us-east-1:123456789012:function:"+functionName)
		header.Set("Lambda-Runtime-Trace-Id", fmt.Sprintf("Root=1-%08x-%024x;Parent=%016x;Sampled=0",
			call.began.Unix(), call.serial, call.serial))
		_, _ = w.Write(call.payload) // a process that died meanwhile is seen by its end
	case <-r.Context().Done():
	}
}

// settle ends the current invocation, before the process is told so and may exit.
func (in *instance) settle(w http.ResponseWriter, r *http.Request, got answer) {
	call := in.current.Load()
	if call == nil || call.id != r.PathValue("id") || !in.current.CompareAndSwap(call, nil) {
		in.refuseAnswer(w, r.PathValue("id"))
		return
	}
	in.settled.Store(call)
	call.answer <- got
	if got.refused != "" {
		refuse(w, got.status, got.refused)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// refuseAnswer tells a second answer to the latest invocation from an answer to another one.
func (in *instance) refuseAnswer(w http.ResponseWriter, id string) {
	if call := in.settled.Load(); call != nil && call.id == id {
		refuse(w, http.StatusForbidden, "InvalidStateTransition")
		return
	}
	refuse(w, http.StatusBadRequest, "InvalidRequestID")
}

// readResponse reads one byte more than is allowed, so that too much is seen.
func readResponse(body io.Reader) answer {
	data, err := io.ReadAll(io.LimitReader(body, maxResponse+1))
	switch {
	case err != nil:
		return answer{
			err:    &FunctionError{Type: "Runtime.TruncatedResponse", Message: err.Error()},
			status: http.StatusBadRequest, refused: "TruncatedHTTPRequest",
		}
	case len(data) > maxResponse:
		return answer{
			err: &FunctionError{
				Type:    "Function.ResponseSizeTooLarge",
				Message: fmt.Sprintf("Response payload size exceeded maximum allowed payload size (%d bytes).", maxResponse),
			},
			status: http.StatusRequestEntityTooLarge, refused: "RequestEntityTooLarge",
		}
	}
	return answer{body: data}
}

func readError(body io.Reader) *FunctionError {
	var reported FunctionError
	if err := json.NewDecoder(io.LimitReader(body, maxResponse)).Decode(&reported); err != nil {
		return &FunctionError{Type: "Runtime.Unknown", Message: fmt.Sprintf("unreadable error report: %v", err)}
	}
	reported.Type = cmp.Or(reported.Type, "Runtime.Unknown")
	return &reported
}

func refuse(w http.ResponseWriter, status int, kind string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"errorType":%q,"errorMessage":%q}`, kind, http.StatusText(status))
}
