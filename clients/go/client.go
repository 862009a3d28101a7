// Package boxoffice is a client of the boxoffice ticketing API. The package api below it is generated from the OpenAPI document.
package boxoffice

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
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
	configuration.AddDefaultHeader("X-API-Key", key)
	configuration.AddDefaultHeader("X-Client-Version", Version)
	configuration.HTTPClient = &http.Client{
		Transport: &Transport{},
		// A redirect to another server would reveal the key to it.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return api.NewAPIClient(configuration)
}

// Error is an error response of the API.
type Error struct {
	// Status of the response.
	Status int
	// Code is stable. Later versions of the server may send others.
	Code string
	// Text of the error.
	Text string
	// RequestID is the identifier by which the server's log names the request.
	RequestID string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%d %s: %s (request %s)", e.Status, e.Code, e.Text, e.RequestID)
}

// AsError returns the error of an operation as an *Error, if the server sent it; otherwise err itself.
func AsError(err error, response *http.Response) error {
	var generic *api.GenericOpenAPIError
	if response == nil || !errors.As(err, &generic) {
		return err
	}
	var body struct{ Code, Error, Message string }
	if json.Unmarshal(generic.Body(), &body) != nil || body.Code == "" {
		return err
	}
	text := body.Error
	if text == "" {
		text = body.Message
	}
	return &Error{response.StatusCode, body.Code, text, response.Header.Get("X-Request-Id")}
}
