// Command later_server sends requests to a server of a later version, which clients/check simulates.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"example.com/boxoffice"
	"example.com/boxoffice/api"
)

func main() {
	client := boxoffice.Connect(os.Args[1], "key")
	ctx := context.Background()
	order, response, err := client.OrdersAPI.OrderGet(ctx, "17637000000081").Execute()
	if err != nil {
		log.Fatal(boxoffice.AsError(err, response))
	}
	var apiError *boxoffice.Error
	_, response, err = client.HostsAPI.HostGet(ctx, "1").Execute()
	if !errors.As(boxoffice.AsError(err, response), &apiError) {
		log.Fatal(err)
	}
	// The first attempt of each fails.
	newOrder := api.NewOrderCreate(map[string]int64{"/sections/1": 1})
	placed, response, err := client.OrdersAPI.OrderCreate(ctx).OrderCreate(*newOrder).Execute()
	if err != nil {
		log.Fatal(boxoffice.AsError(err, response))
	}
	removed, err := client.RegionsAPI.RegionDelete(ctx, "1").Execute()
	if err != nil {
		log.Fatal(boxoffice.AsError(err, removed))
	}
	fmt.Printf("status %s code %s retried %s removed %d\n", order.Status, apiError.Code, placed.Status, removed.StatusCode)
}
