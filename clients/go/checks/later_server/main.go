// Command later_server sends requests to a server of a later version, which clients/check simulates.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"example.com/boxoffice"
	"example.com/boxoffice/api"
)

func main() {
	client := boxoffice.Connect(os.Args[1], "a secret key")
	ctx := context.Background()
	order, response, err := client.OrdersAPI.OrderGet(ctx, "17637000000081").Execute()
	if err != nil {
		log.Fatal(boxoffice.AsError(err, response))
	}
	transport := client.GetConfig().HTTPClient.Transport.(*boxoffice.Transport)
	printed := fmt.Sprintf("%+v %+v %+v %+v %+v", client, client.GetConfig(), client.GetConfig().HTTPClient, transport, response.Request)
	if strings.Contains(printed, "secret") {
		log.Fatal("a log has the key: ", printed)
	}
	checkRedirects(os.Args[1])
	_, _, err = boxoffice.Connect(os.Args[1], "a secret key\n").OrdersAPI.OrderGet(ctx, "17637000000081").Execute()
	if err == nil || strings.Contains(err.Error(), "secret") {
		log.Fatal("a header can't have this key: ", err)
	}
	unreachable := boxoffice.Connect("http://127.0.0.1:1", "key")
	unreachable.GetConfig().HTTPClient.Transport.(*boxoffice.Transport).MaxAttempts = 1
	_, response, err = unreachable.TokensAPI.TokenAuthenticationGet(ctx, "SECRET").Execute()
	err = boxoffice.AsError(err, response)
	if err == nil || strings.Contains(err.Error(), "SECRET") || !strings.Contains(err.Error(), "http://127.0.0.1:1") {
		log.Fatal("an error must have the address without the path: ", err)
	}
	// A proxy could make requests for other resources of these.
	for _, session := range []string{"", ".", ".."} {
		response, err = client.SessionsAPI.AccountSessionDelete(ctx, "1", session).Execute()
		if response != nil || err == nil || !strings.Contains(err.Error(), "is not the identifier of a resource") {
			log.Fatal("nothing must be sent for the session ", session, ": ", err)
		}
	}
	_, response, err = client.HostsAPI.HostGet(ctx, "1").Execute()
	unknown := errorOf(response, err)
	// The first attempt of each fails.
	newOrder := api.NewOrderCreate(map[string]int64{"/sections/1": 1})
	placed := must(client.OrdersAPI.OrderCreate(ctx).OrderCreate(*newOrder).Execute())
	removed, err := client.RegionsAPI.RegionDelete(ctx, "1").Execute()
	if err != nil {
		log.Fatal(boxoffice.AsError(err, removed))
	}
	fmt.Printf("status %s code %s retried %s removed %d", order.Status, unknown.Code, placed.Status, removed.StatusCode)

	_, response, err = client.VenuesAPI.VenueGet(ctx, "1").Execute()
	foreign := errorOf(response, err)
	_, response, err = client.HostsAPI.HostGet(ctx, "2").Execute()
	invalid := errorOf(response, err)
	export := must(client.ReportsAPI.EventOrderExportGet(ctx, "1").Execute())
	document := must(client.OrdersAPI.OrderDocumentGet(ctx, "1").Execute())
	region := must(client.RegionsAPI.RegionGet(ctx, "1").Execute())
	fmt.Printf(" foreign %d fields %s export %d", foreign.Status, invalid.Fields[0].Name, utf8.RuneCountInString(export))
	fmt.Printf(" document %s region %s", document, region.Name)

	transport.AttemptTimeout = 2 * time.Second
	slow := must(client.ReportsAPI.EventOrderExportGet(ctx, "2").Execute())
	page := "accepted"
	if _, _, err = client.ReportsAPI.EventOrderExportGet(ctx, "3").Execute(); err != nil {
		page = "rejected"
	}
	logout, err := client.SessionsAPI.SessionActiveDelete(ctx).Execute()
	if err != nil {
		log.Fatal(boxoffice.AsError(err, logout))
	}
	_, response, err = client.ReviewAPI.SubmissionDelete(ctx, "1").Approved(true).Execute()
	decision := errorOf(response, err)
	response, err = boxoffice.Connect(os.Args[2], "key").RegionsAPI.RegionDelete(ctx, "1").Execute()
	refused := errorOf(response, err)
	fmt.Printf(" slow %d page %s logout %d decision %d", len(slow), page, logout.StatusCode, decision.Status)
	_, response, err = client.RegionsAPI.RegionGet(ctx, "3").IfNoneMatch(`"1"`).Execute()
	unchanged := errorOf(response, err)
	update := api.NewPreferencesUpdate()
	update.SetRegionNil()
	preferences := must(client.AccountsAPI.AccountPreferencesUpdate(ctx, "1").PreferencesUpdate(*update).Execute())
	preferred := "none"
	if preferences.Region.IsSet() && preferences.Region.Get() != nil {
		preferred = *preferences.Region.Get()
	}
	fmt.Printf(" refused %d unchanged %d region %s", refused.Status, unchanged.Status, preferred)
	cancelled, err := client.TransfersAPI.TransferDelete(ctx, "1").IfMatch(`"1"`).Execute()
	if err != nil {
		log.Fatal(boxoffice.AsError(err, cancelled))
	}
	response, err = client.TransfersAPI.TransferDelete(ctx, "2").Execute()
	claimed := errorOf(response, err)
	names := regionNames(ctx, client)
	categories := boxoffice.Entries[api.Category](func(page int64) (*api.CategoryPage, *http.Response, error) {
		return client.CategoriesAPI.CategoryList(ctx).Records(100).Page(page).Execute()
	})
	shortened := 0
	for categories.Next() {
		shortened++
	}
	if categories.Err() != nil {
		log.Fatal(categories.Err())
	}
	fmt.Printf(" cancelled %d claimed %d", cancelled.StatusCode, claimed.Status)
	fmt.Printf(" entries %d shortened %d\n", len(names), shortened)
}

// must returns the body of a response, or exits with its error.
func must[T any](body T, response *http.Response, err error) T {
	if err != nil {
		log.Fatal(boxoffice.AsError(err, response))
	}
	return body
}

// regionNames reads a list, as the README does.
func regionNames(ctx context.Context, client *api.APIClient) (names []string) {
	regions := boxoffice.Entries[api.Region](func(page int64) (*api.RegionPage, *http.Response, error) {
		return client.RegionsAPI.RegionList(ctx).Records(100).Page(page).Execute()
	})
	for regions.Next() {
		names = append(names, regions.Entry().Name)
	}
	if err := regions.Err(); err != nil {
		log.Fatal(err)
	}
	return names
}

// checkRedirects sends a request of its own to a server that redirects it to another one, and one whose headers it checks.
func checkRedirects(address string) {
	request := make(chan *http.Request, 1)
	redirecting := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, received *http.Request) {
		request <- received
		http.Redirect(response, received, address+"/venues/1", http.StatusFound)
	}))
	defer redirecting.Close()
	response, err := boxoffice.HTTPClient("a secret key").Get(redirecting.URL + "/time")
	if err != nil || response.StatusCode != http.StatusFound {
		log.Fatal("a redirect must not be followed: ", response, err)
	}
	header := (<-request).Header
	if header.Get("X-API-Key") != "a secret key" || header.Get("X-Client-Version") != boxoffice.Version {
		log.Fatal("the key or the version is missing: ", header)
	}
}

// errorOf returns the error of a response.
func errorOf(response *http.Response, err error) *boxoffice.Error {
	var apiError *boxoffice.Error
	if !errors.As(boxoffice.AsError(err, response), &apiError) {
		log.Fatal(err)
	}
	return apiError
}
