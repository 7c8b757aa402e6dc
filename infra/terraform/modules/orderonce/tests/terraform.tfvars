# What every test sets. terraform test reads this file.
package_dir               = "tests/packages"
stripe_secret_key         = "sk_test_canary"
stripe_read_key           = "rk_test_canary"
stripe_refund_key         = "rk_test_canary"
webhook_secret            = "whsec_canary"
alarm_topic_arn           = "arn:aws:sns:eu-west-1:123456789012:ops"
receipt_from              = "receipts@shop.invalid"
receipt_configuration_set = "shop-receipts"
