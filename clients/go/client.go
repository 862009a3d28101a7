// Package boxoffice is a client of the boxoffice ticketing API. The package api below it is generated from the OpenAPI document.
package boxoffice

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"example.com/boxoffice/api"
)

// Version of the API for which this client was generated.
const Version = "3.0.0"

// Connect creates a client of the server at address, with the key of an application, a session or an admission token.
// It retries requests, see Transport.
func Connect(address, key string) *api.APIClient {
	configuration := api.NewConfiguration()
	configuration.Servers = api.ServerConfigurations{{URL: strings.TrimRight(address, "/")}}
	configuration.HTTPClient = HTTPClient(key)
	return api.NewAPIClient(configuration)
}

// HTTPClient creates the client with which Connect sends requests, for requests to the server that the program writes itself. It adds
// the key and the version, retries requests, see Transport, and doesn't follow redirects: another server would receive the key.
func HTTPClient(key string) *http.Client {
	return &http.Client{
		Transport:     &Transport{authenticate: authenticator(key)},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// authenticator returns a function that adds the version and the key to the headers of a request. Programs log configurations, so the
// key is in none.
func authenticator(key string) func(http.Header) error {
	return func(header http.Header) error {
		if strings.IndexFunc(key, func(c rune) bool { return c < ' ' || c > '~' }) >= 0 {
			return errors.New("the key contains characters that a header can't have, such as the end of a line")
		}
		header.Set("X-API-Key", key)
		header.Set("X-Client-Version", Version)
		return nil
	}
}

// Error is an error response.
type Error struct {
	// Status of the response.
	Status int
	// Code is stable. Later versions of the server may send others. It is empty if the response is not one of the API, such as
	// that of a load balancer.
	Code string
	// Text of the error.
	Text string
	// RequestID is the identifier by which the server's log names the request.
	RequestID string
	// Fields are the missing and invalid arguments.
	Fields []api.FieldProblem
	// Refused are the tickets that were not admitted, with the reasons.
	Refused []api.RefusedTicket
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: %s (request %s)", strings.TrimSpace(fmt.Sprint(e.Status, " ", e.Code)), e.Text, e.RequestID)
}

// AsError returns the error of an operation as an *Error, if there was an error response; otherwise err itself. The path of the
// request, which may contain a code, is removed from the error of a request that failed, so that it can be logged.
func AsError(err error, response *http.Response) error {
	var failed *url.Error
	if errors.As(err, &failed) {
		return &url.Error{Op: failed.Op, URL: withoutPath(failed.URL), Err: failed.Err}
	}
	var generic *api.GenericOpenAPIError
	if response == nil || response.StatusCode < 300 || !errors.As(err, &generic) {
		return err
	}
	result := &Error{Status: response.StatusCode, RequestID: response.Header.Get("X-Request-Id")}
	if response.StatusCode == http.StatusNotModified {
		result.Text = "not modified"
		return result
	}
	var body api.Error
	if json.Unmarshal(generic.Body(), &body) != nil {
		result.Text = "The response is not one of this API."
		return result
	}
	result.Code, result.Fields, result.Refused = body.Code, body.Fields, body.Refused
	if result.Text = body.GetError(); result.Text == "" {
		result.Text = body.GetMessage()
	}
	return result
}

func withoutPath(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: parsed.Scheme, Host: parsed.Host}).String()
}
