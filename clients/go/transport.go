package boxoffice

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// firstDelay is the approximate delay before the first retry; it doubles before each further one.
	firstDelay = 100 * time.Millisecond
	// maxDelay is the maximum delay, unless the server requests a longer one.
	maxDelay = 5 * time.Second
)

// Transport repeats a request if the connection fails, the attempt times out, there were too many requests (429), the server is
// unavailable (503), or an earlier attempt with the same idempotency key is in progress (409). Each POST and PATCH has an
// Idempotency-Key, so the server executes it once. A repeated DELETE succeeds if the resource is gone, or the transfer cancelled.
//
// The clients that HTTPClient and Connect create follow no redirects. Another http.Client may send the key to other servers.
//
// An identifier that is empty, . or .. is an error, and nothing is sent: a proxy could make a request for another resource of it.
type Transport struct {
	// Base sends the requests; http.DefaultTransport if nil.
	Base http.RoundTripper
	// MaxAttempts is the number of attempts, the first one included; 8 if 0.
	MaxAttempts int
	// AttemptTimeout bounds each attempt: the time until the head of the response, and then that of each part of its body, so that
	// a long response may take longer; 30 seconds if 0.
	AttemptTimeout time.Duration
	// RetryWindow is the time after which no retry starts; 100 seconds if 0.
	RetryWindow time.Duration
	// authenticate adds the key to the headers.
	authenticate func(http.Header) error
}

// RoundTrip sends the request until the response is final, and reads the response completely.
func (t *Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	// The response refers to the caller's request, which doesn't have the key.
	original := request
	request = request.Clone(request.Context())
	err := checkPath(request.URL.EscapedPath())
	if err == nil && t.authenticate != nil {
		err = t.authenticate(request.Header)
	}
	if err != nil {
		if request.Body != nil {
			request.Body.Close()
		}
		return nil, err
	}
	if (request.Method == http.MethodPost || request.Method == http.MethodPatch) && request.Header.Get("Idempotency-Key") == "" {
		key := make([]byte, 16)
		if _, err := rand.Read(key); err != nil {
			return nil, err
		}
		request.Header.Set("Idempotency-Key", hex.EncodeToString(key))
	}
	var body []byte
	if request.Body != nil {
		var err error
		body, err = io.ReadAll(request.Body)
		request.Body.Close()
		if err != nil {
			return nil, err
		}
	}
	attempts, window := orDefault(t.MaxAttempts, 8), orDefault(t.RetryWindow, 100*time.Second)
	if request.URL.Scheme != "http" && request.URL.Scheme != "https" {
		// The address is wrong.
		attempts = 1
	}
	started := time.Now()
	mayBeExecuted := false
	for attempt := 1; ; attempt++ {
		response, content, err := t.send(request, body)
		delay := retryDelay(attempt, response)
		isLast := attempt >= attempts || delay > window-time.Since(started) || request.Context().Err() != nil
		if err != nil && isLast {
			return nil, err
		}
		if err == nil && (isLast || !isTemporary(response, content)) {
			if mayBeExecuted && request.Method == http.MethodDelete && t.isGone(request, codeOf(content)) {
				response.StatusCode, response.Status, content = http.StatusNoContent, "204 No Content", nil
			}
			if response.StatusCode < 300 && strings.HasPrefix(response.Header.Get("Content-Type"), "text/html") {
				// The address may be that of another server. The API has no HTML.
				return nil, errors.New("the response is not one of this API, but a web page")
			}
			response.Request, response.Body = original, io.NopCloser(bytes.NewReader(content))
			return response, nil
		}
		mayBeExecuted = mayBeExecuted || err != nil && !isConnect(err) || err == nil && response.StatusCode == http.StatusServiceUnavailable
		select {
		case <-time.After(delay):
		case <-request.Context().Done():
			return nil, request.Context().Err()
		}
	}
}

// checkPath returns an error for a path with an identifier that leads to another resource.
func checkPath(path string) error {
	for _, segment := range strings.Split(strings.TrimPrefix(path, "/"), "/") {
		if segment == "." || segment == ".." || segment == "" && len(path) > 1 {
			return fmt.Errorf("%q is not the identifier of a resource", segment)
		}
	}
	return nil
}

// send sends one attempt and reads the whole response, because the connection may fail within the body.
func (t *Transport) send(request *http.Request, body []byte) (*http.Response, []byte, error) {
	ctx, cancel := context.WithCancel(request.Context())
	defer cancel()
	limit := orDefault(t.AttemptTimeout, 30*time.Second)
	timer := time.AfterFunc(limit, cancel)
	defer timer.Stop()
	response, content, err := t.receive(request.Clone(ctx), body, func() { timer.Reset(limit) })
	if err != nil && ctx.Err() != nil && request.Context().Err() == nil {
		err = context.DeadlineExceeded
	}
	return response, content, err
}

// receive sends an attempt and reads its response. It calls received after each part of the body.
func (t *Transport) receive(attempt *http.Request, body []byte, received func()) (*http.Response, []byte, error) {
	if body != nil {
		attempt.Body = io.NopCloser(bytes.NewReader(body))
	}
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	response, err := base.RoundTrip(attempt)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(&observedReader{response.Body, received})
	if err != nil {
		return nil, nil, err
	}
	return response, content, nil
}

// observedReader calls a function after each read.
type observedReader struct {
	io.Reader
	received func()
}

func (r *observedReader) Read(buffer []byte) (int, error) {
	n, err := r.Reader.Read(buffer)
	r.received()
	return n, err
}

// isConnect returns whether there was no connection, so that nothing was sent.
func isConnect(err error) bool {
	var failed *net.OpError
	return errors.As(err, &failed) && failed.Op == "dial"
}

// isGone returns whether the error of a repeated DELETE shows that an earlier attempt was executed.
func (t *Transport) isGone(request *http.Request, code string) bool {
	switch code {
	case "resource.not-found":
		// The success of a decision has a body, so its caller has to read the decision.
		return !strings.Contains(request.URL.Path, "/submissions/")
	case "transfer.not-open":
		// Another account may have claimed the transfer instead.
		return t.isCancelled(request)
	case "session.ended":
		return true
	case "key.refused":
		// The session was that of the key itself.
		return strings.HasSuffix(request.URL.Path, "/sessions/active")
	default:
		return false
	}
}

// isCancelled returns whether the transfer of a DELETE is cancelled.
func (t *Transport) isCancelled(request *http.Request) bool {
	read := request.Clone(request.Context())
	read.Method = http.MethodGet
	read.Header.Del("If-Match")
	_, content, err := t.send(read, nil)
	var transfer struct{ Status string }
	return err == nil && json.Unmarshal(content, &transfer) == nil && transfer.Status == "Cancelled"
}

func retryDelay(attempt int, response *http.Response) time.Duration {
	if response != nil {
		if delay, isSet := retryAfter(response.Header); isSet {
			return delay + time.Duration(mathrand.Int63n(int64(firstDelay)))
		}
	}
	backoff := maxDelay
	// Later ones are longer, and could overflow.
	if attempt < 6 {
		backoff = firstDelay << attempt
	}
	return backoff/2 + time.Duration(mathrand.Int63n(int64(backoff/2)))
}

// retryAfter returns the seconds or the date of Retry-After as a delay.
func retryAfter(header http.Header) (delay time.Duration, isSet bool) {
	value := header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 32); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(seconds) * time.Second, true
	}
	until, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	// The clock of the server may differ from ours.
	now, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	if delay = until.Sub(now); delay < 0 {
		delay = 0
	}
	return delay, true
}

func isTemporary(response *http.Response, content []byte) bool {
	switch response.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return true
	case http.StatusConflict:
		return codeOf(content) == "idempotency.under-way"
	default:
		return false
	}
}

func codeOf(content []byte) string {
	var body struct{ Code string }
	if !strings.HasPrefix(string(content), "{") || json.Unmarshal(content, &body) != nil {
		return ""
	}
	return body.Code
}

func orDefault[T int | time.Duration](value, fallback T) T {
	if value == 0 {
		return fallback
	}
	return value
}
